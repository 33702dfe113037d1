// GrpcMessage: a request as gRPC received it, perhaps compressed, and GrpcService, which accepts calls with such
// requests.
//
// It is inflated up to a limit. gRPC's own inflation is turned off: it has no limit, so that a
// message of 1 MB took 1.2 GB, and all calls that wait to be accepted have been inflated.
//
// Threading: none; gRPC reads a message on the thread that takes it from the completion queue.
#ifndef FOLIOT_EDGE_GRPC_GRPC_MESSAGE_H_
#define FOLIOT_EDGE_GRPC_GRPC_MESSAGE_H_

#include <google/protobuf/message.h>
#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <string>

#include "foundation/base/check.h"
#include "foundation/base/status.h"

namespace foliot {

template <typename Message>
struct GrpcMessage {
  explicit GrpcMessage(uint64_t most) : bytes_max(most) {}

  uint64_t bytes_max;  // of the message, inflated
  Message message;
  Status status;  // why the message could not be read
};

// Errors: kResourceExhausted: it has more than `bytes_max` bytes; kInvalidArgument: it is no such message.
Status read_grpc_message(grpc::ByteBuffer& bytes, uint64_t bytes_max, google::protobuf::Message& message);

// `Generated`: an asynchronous service as protoc generates it, the only one of its file.
template <typename Generated>
class GrpcService final : public Generated {
 public:
  template <typename Message, typename Writer>
  void accept(const char* method, grpc::ServerContext* context, GrpcMessage<Message>* message, Writer* writer,
              grpc::ServerCompletionQueue* queue, void* tag) {
    this->RequestAsyncUnary(index_of<Message>(method), context, message, writer, queue, queue, tag);
  }
  template <typename Response, typename Message>
  void accept_stream(const char* method, grpc::ServerContext* context,
                     grpc::ServerAsyncReaderWriter<Response, GrpcMessage<Message>>* stream,
                     grpc::ServerCompletionQueue* queue, void* tag) {
    this->RequestAsyncBidiStreaming(index_of<Message>(method), context, stream, queue, queue, tag);
  }

 private:
  // Generated code numbers methods in the order of the file.
  template <typename Message>
  static int index_of(const char* method) {
    const auto* const found = Message::descriptor()->file()->service(0)->FindMethodByName(method);
    FOLIOT_CHECK(found != nullptr);
    return found->index();
  }
};

}  // namespace foliot

namespace grpc {

template <typename Message>
class SerializationTraits<foliot::GrpcMessage<Message>, void> {
 public:
  // What is wrong with it is the call's to answer.
  static Status Deserialize(ByteBuffer* bytes, foliot::GrpcMessage<Message>* read) {
    read->status = foliot::read_grpc_message(*bytes, read->bytes_max, read->message);
    bytes->Clear();
    return Status::OK;
  }
};

}  // namespace grpc

#endif  // FOLIOT_EDGE_GRPC_GRPC_MESSAGE_H_
