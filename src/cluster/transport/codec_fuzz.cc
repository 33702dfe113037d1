// libFuzzer target: for any bytes of a peer, a connection passes on messages that
// encode to the same bytes again, or ends with a reason.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "cluster/transport/connection.h"
#include "foundation/base/check.h"

namespace foliot {
namespace {

template <typename Message>
Status read_twice(const Frame& frame) {
  Message message;
  FOLIOT_RETURN_IF_ERROR(decode(frame, message));
  WireBytes bytes;
  encode(message, bytes);
  Message again;
  FOLIOT_CHECK(decode({frame.type, std::span(bytes).subspan(kFrameLengthBytes + 1)}, again).ok());
  return Status();
}

class Listener : public Session {
 public:
  Status on_frame(const Frame& frame, TimePoint /*now*/) override {
    switch (frame.type) {
      case MessageType::kGoodbye: return read_twice<Goodbye>(frame);
      case MessageType::kPing: return read_twice<Ping>(frame);
      case MessageType::kPong: return read_twice<Pong>(frame);
      case MessageType::kRegistration: return read_twice<Registration>(frame);
      case MessageType::kWelcome: return read_twice<Welcome>(frame);
      case MessageType::kAction: return read_twice<Action>(frame);
      case MessageType::kOutcome: return read_twice<Outcome>(frame);
      case MessageType::kModels: return read_twice<Models>(frame);
      case MessageType::kRequest: return read_twice<Request>(frame);
      case MessageType::kCancel: return read_twice<Cancel>(frame);
      case MessageType::kCompletion: return read_twice<Completion>(frame);
      case MessageType::kStatisticsRequest: return read_twice<StatisticsRequest>(frame);
      case MessageType::kStatistics: return read_twice<Statistics>(frame);
      case MessageType::kLeave: return read_twice<Leave>(frame);
      case MessageType::kAdmission: return read_twice<Admission>(frame);
      case MessageType::kWorkers: return read_twice<Workers>(frame);
      case MessageType::kAttach: return read_twice<Attach>(frame);
      case MessageType::kFetch: return read_twice<Fetch>(frame);
      case MessageType::kInputs: return read_twice<Inputs>(frame);
      case MessageType::kOutputs: return read_twice<Outputs>(frame);
      case MessageType::kOffer: return read_twice<Offer>(frame);
      case MessageType::kWithdrawal: return read_twice<Withdrawal>(frame);
      case MessageType::kNaming: return read_twice<Naming>(frame);
      case MessageType::kRelease: return read_twice<Release>(frame);
      case MessageType::kLabel: return read_twice<Label>(frame);
      case MessageType::kUnserved: return read_twice<Unserved>(frame);
      case MessageType::kPipelines: return read_twice<Pipelines>(frame);
      case MessageType::kTasks: return read_twice<Tasks>(frame);
      case MessageType::kVisits: return read_twice<Visits>(frame);
      case MessageType::kDiscard: return read_twice<Discard>(frame);
      case MessageType::kConsumed: return read_twice<Consumed>(frame);
      case MessageType::kHomeOffer: return read_twice<HomeOffer>(frame);
      case MessageType::kHomes: return read_twice<Homes>(frame);
      case MessageType::kHomeCall: return read_twice<HomeCall>(frame);
      case MessageType::kHomeReply: return read_twice<HomeReply>(frame);
      case MessageType::kLeadership: return read_twice<Leadership>(frame);
    }
    FOLIOT_CHECK(false);
  }
  void on_close(const Status& /*reason*/, TimePoint /*now*/) override {}
};

class Open : public ConnectionHandler, public ConnectionDriver {
 public:
  Result<std::unique_ptr<Session>> on_open(Connection&, Role, TimePoint) override {
    return std::unique_ptr<Session>(std::make_unique<Listener>());
  }
  void on_no_greeting(const std::string&, const Status&) override {}
  void on_unsent(Connection&) override {}
};

}  // namespace
}  // namespace foliot

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  foliot::Open open;
  foliot::ConnectionOptions options;
  options.frame_bytes_max = 1 << 16;
  foliot::Connection connection(options, "fuzzer", open, open);
  // The greeting is valid in all runs but those that begin otherwise.
  if (size > 0 && data[0] != 'F') {
    foliot::WireBytes greeting{
        std::byte{'F'}, std::byte{'O'}, std::byte{'L'}, std::byte{'T'}, std::byte{foliot::kWireVersion},
        std::byte{0},   std::byte{1},   std::byte{0}};
    greeting.resize(foliot::kGreetingBytes);
    std::copy(greeting.begin(), greeting.end(), connection.space().begin());
    if (!connection.received(greeting.size(), {}).ok()) return 0;
  }
  while (size > 0) {
    const auto space = connection.space();
    const size_t piece = std::min(space.size(), size);
    std::copy_n(reinterpret_cast<const std::byte*>(data), piece, space.begin());
    if (!connection.received(piece, {}).ok()) break;
    data += piece;
    size -= piece;
  }
  return 0;
}
