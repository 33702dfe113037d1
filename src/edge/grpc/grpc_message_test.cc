#include "edge/grpc/grpc_message.h"

#include <gmock/gmock.h>
#include <google/protobuf/io/gzip_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <gtest/gtest.h>
#include <inference.grpc.pb.h>

#include <string>
#include <vector>

namespace foliot {
namespace {

using google::protobuf::io::GzipOutputStream;
using inference::ModelInferRequest;
using testing::HasSubstr;

constexpr uint64_t kBytesMax = 1 << 20;

std::string message(size_t bytes) {
  ModelInferRequest request;
  request.set_model_name("dense");
  request.add_raw_input_contents(std::string(bytes, 'x'));
  return request.SerializeAsString();
}

std::string compressed(const std::string& text, GzipOutputStream::Format format) {
  std::string out;
  google::protobuf::io::StringOutputStream to(&out);
  GzipOutputStream::Options options;
  options.format = format;
  GzipOutputStream stream(&to, options);
  ModelInferRequest request;
  EXPECT_TRUE(request.ParseFromString(text) && request.SerializeToZeroCopyStream(&stream) && stream.Close());
  return out;
}

// In slices of so many bytes, as they come from a network.
grpc::ByteBuffer buffer(const std::string& text, size_t slice_bytes = 1000) {
  std::vector<grpc::Slice> slices;
  for (size_t i = 0; i < text.size(); i += slice_bytes) slices.emplace_back(text.substr(i, slice_bytes));
  return grpc::ByteBuffer(slices.data(), slices.size());
}

Status read(const std::string& text, ModelInferRequest& request, size_t slice_bytes = 1000) {
  grpc::ByteBuffer bytes = buffer(text, slice_bytes);
  return read_grpc_message(bytes, kBytesMax, request);
}

TEST(GrpcMessageTest, IsReadCompressedOrNot) {
  for (const size_t slice_bytes : {size_t{1}, size_t{1000}}) {
    for (const std::string& text : {message(5000), compressed(message(5000), GzipOutputStream::GZIP),
                                    compressed(message(5000), GzipOutputStream::ZLIB)}) {
      ModelInferRequest request;
      EXPECT_TRUE(read(text, request, slice_bytes).ok());
      EXPECT_EQ(request.SerializeAsString(), message(5000));
    }
  }
  ModelInferRequest empty;
  EXPECT_TRUE(read("", empty).ok());
}

TEST(GrpcMessageTest, IsInflatedUpToALimit) {
  ModelInferRequest request;
  EXPECT_TRUE(read(compressed(message(kBytesMax - 100), GzipOutputStream::GZIP), request).ok());
  const Status status = read(compressed(message(64 * kBytesMax), GzipOutputStream::GZIP), request);
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(status.message(), HasSubstr("more than the 1048576 bytes allowed"));
}

TEST(GrpcMessageTest, WhatIsNoMessageIsNamed) {
  std::string damaged = compressed(message(5000), GzipOutputStream::GZIP);
  damaged[20] = static_cast<char>(damaged[20] ^ 0x55);
  const std::string whole = compressed(message(5000), GzipOutputStream::GZIP);
  const std::string after = whole + "more";
  for (const std::string& text :
       {std::string("\x0a\xff"), std::string("\x1f\x8b"), damaged, whole.substr(0, whole.size() - 1), after}) {
    ModelInferRequest request;
    const Status status = read(text, request);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr("ModelInferRequest"));
  }
}

}  // namespace
}  // namespace foliot
