#include "edge/grpc/grpc_message.h"

#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/gzip_stream.h>

#include <algorithm>
#include <limits>

namespace foliot {
namespace {

// gzip begins with 0x1f, which begins no message: there is no wire type 7. zlib begins with 0x78, field 15, which no
// request has.
bool is_compressed(grpc::ProtoBufferReader& reader) {
  const void* data = nullptr;
  int size = 0;
  while (reader.Next(&data, &size)) {
    if (size == 0) continue;
    const unsigned char first = *static_cast<const unsigned char*>(data);
    reader.BackUp(size);
    return first == 0x1f || first == 0x78;
  }
  return false;
}

}  // namespace

Status read_grpc_message(grpc::ByteBuffer& bytes, uint64_t bytes_max, google::protobuf::Message& message) {
  const auto is_no_message = [&] {
    return Status::invalid_argument(fmt::format("the message is no {}", message.GetDescriptor()->name()));
  };
  grpc::ProtoBufferReader reader(&bytes);
  if (!reader.status().ok()) return is_no_message();
  if (!is_compressed(reader)) return message.ParseFromZeroCopyStream(&reader) ? Status() : is_no_message();
  google::protobuf::io::GzipInputStream inflated(&reader);
  google::protobuf::io::CodedInputStream coded(&inflated);
  coded.SetTotalBytesLimit(static_cast<int>(std::min<uint64_t>(bytes_max, std::numeric_limits<int>::max())));
  if (message.ParseFromCodedStream(&coded) && coded.ConsumedEntireMessage()) return Status();
  if (coded.BytesUntilTotalBytesLimit() <= 0) {
    return Status::resource_exhausted(fmt::format(
        "the message has more than the {} bytes allowed when it is inflated; --body-max raises that", bytes_max));
  }
  return is_no_message();
}

}  // namespace foliot
