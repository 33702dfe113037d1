#include "edge/grpc/grpc_unknown_methods.h"

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace foliot {
namespace {

// Of a name that an error quotes.
constexpr size_t kShownBytesMax = 200;

std::string what_to_do_instead(std::string_view method) {
  const std::string shown = fmt::format("there is no method '{}'", method.substr(0, kShownBytesMax));
  if (method == "/grpc.health.v1.Health/Watch") return shown + ": call Check now and then, or List";
  if (method.starts_with("/grpc.reflection.")) {
    return shown + ": there is no reflection; give the client the .proto files of the services that it calls";
  }
  return shown + " on this port";
}

class UnknownMethodCall final : public GrpcCall {
 public:
  UnknownMethodCall(GrpcCalls& calls, grpc::AsyncGenericService& service) : GrpcCall(calls), service_(service) {
    service.RequestCall(&called_, &stream_, calls.queue(), calls.queue(), accepted_tag_.pointer());
  }

 private:
  void on_accepted(bool ok) {
    if (!ok || calls_.stopping()) return calls_.remove(*this);
    calls_.add<UnknownMethodCall>(service_);
    stream_.Finish({grpc::StatusCode::UNIMPLEMENTED, what_to_do_instead(called_.method())}, finished_tag_.pointer());
  }
  void on_finished(bool /*ok*/) { calls_.remove(*this); }

  grpc::AsyncGenericService& service_;
  grpc::GenericServerContext called_;
  grpc::GenericServerAsyncReaderWriter stream_{&called_};
  GrpcTag<UnknownMethodCall> accepted_tag_{*this, &UnknownMethodCall::on_accepted};
  GrpcTag<UnknownMethodCall> finished_tag_{*this, &UnknownMethodCall::on_finished};
};

}  // namespace

void refuse_unknown_methods(grpc::AsyncGenericService& service, GrpcCalls& calls) {
  calls.add<UnknownMethodCall>(service);
}

}  // namespace foliot
