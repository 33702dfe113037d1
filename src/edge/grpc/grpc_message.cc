#include "edge/grpc/grpc_message.h"

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "edge/requests/inflate.h"

namespace foliot {
namespace {

// gzip begins with 0x1f, which begins no message: there is no wire type 7. zlib begins with 0x78, field 15, which no
// request has.
bool is_compressed(const std::vector<grpc::Slice>& slices) {
  for (const grpc::Slice& slice : slices) {
    if (slice.size() > 0) return *slice.begin() == 0x1f || *slice.begin() == 0x78;
  }
  return false;
}

}  // namespace

Status read_grpc_message(grpc::ByteBuffer& bytes, uint64_t bytes_max, google::protobuf::Message& message) {
  const auto is_no_message = [&](std::string_view why) {
    return Status::invalid_argument(fmt::format("the message is no {}{}", message.GetDescriptor()->name(), why));
  };
  std::vector<grpc::Slice> slices;
  if (!bytes.Dump(&slices).ok()) return is_no_message("");
  if (!is_compressed(slices)) {
    grpc::ProtoBufferReader reader(&bytes);
    return reader.status().ok() && message.ParseFromZeroCopyStream(&reader) ? Status() : is_no_message("");
  }
  std::string compressed;
  compressed.reserve(bytes.Length());
  for (const grpc::Slice& slice : slices) compressed.append(slice.begin(), slice.end());
  const Result<std::string> inflated = inflate_bytes(compressed, bytes_max);
  if (!inflated.ok() && inflated.status().code() == StatusCode::kResourceExhausted) {
    return Status::resource_exhausted(fmt::format(
        "the message has more than the {} bytes allowed when it is inflated; --body-max raises that", bytes_max));
  }
  if (!inflated.ok()) return is_no_message(": " + inflated.status().message());
  return message.ParseFromString(*inflated) ? Status() : is_no_message("");
}

}  // namespace foliot
