#include "cluster/transport/codec.h"

#include <fmt/format.h>

#include <cstring>

#include "cluster/transport/message_fields.h"
#include "foundation/base/check.h"

namespace foliot {

std::string_view to_string(Role role) {
  switch (role) {
    case Role::kController: return "controller";
    case Role::kWorker: return "worker";
    case Role::kClient: return "client";
  }
  FOLIOT_CHECK(false);
}

std::string_view to_string(MessageType type) {
  switch (type) {
    case MessageType::kGoodbye: return "GOODBYE";
    case MessageType::kPing: return "PING";
    case MessageType::kPong: return "PONG";
    case MessageType::kRegistration: return "REGISTRATION";
    case MessageType::kWelcome: return "WELCOME";
    case MessageType::kAction: return "ACTION";
    case MessageType::kOutcome: return "OUTCOME";
    case MessageType::kModels: return "MODELS";
    case MessageType::kRequest: return "REQUEST";
    case MessageType::kCancel: return "CANCEL";
    case MessageType::kCompletion: return "COMPLETION";
    case MessageType::kStatisticsRequest: return "STATISTICS_REQUEST";
    case MessageType::kStatistics: return "STATISTICS";
    case MessageType::kLeave: return "LEAVE";
    case MessageType::kAdmission: return "ADMISSION";
    case MessageType::kWorkers: return "WORKERS";
    case MessageType::kAttach: return "ATTACH";
    case MessageType::kFetch: return "FETCH";
    case MessageType::kInputs: return "INPUTS";
    case MessageType::kOutputs: return "OUTPUTS";
    case MessageType::kOffer: return "OFFER";
    case MessageType::kWithdrawal: return "WITHDRAWAL";
    case MessageType::kNaming: return "NAMING";
    case MessageType::kRelease: return "RELEASE";
    case MessageType::kLabel: return "LABEL";
    case MessageType::kUnserved: return "UNSERVED";
    case MessageType::kConsumed: return "CONSUMED";
    case MessageType::kPipelines: return "PIPELINES";
    case MessageType::kVisits: return "VISITS";
    case MessageType::kDiscard: return "DISCARD";
    case MessageType::kTasks: return "TASKS";
    case MessageType::kHomeOffer: return "HOME_OFFER";
    case MessageType::kHomes: return "HOMES";
    case MessageType::kHomeCall: return "HOME_CALL";
    case MessageType::kHomeReply: return "HOME_REPLY";
    case MessageType::kLeadership: return "LEADERSHIP";
  }
  FOLIOT_CHECK(false);
}

namespace {

template <typename Message>
void write(MessageType type, const Message& message, WireBytes& bytes) {
  const size_t begin = bytes.size();
  FieldWriter writer(bytes);
  writer(uint32_t{0}, type, message);
  const auto length = static_cast<uint32_t>(bytes.size() - begin - kFrameLengthBytes);
  std::memcpy(bytes.data() + begin, &length, sizeof(length));
}

template <typename Message>
Status read(const Frame& frame, Message& message) {
  FieldReader reader(frame.body);
  reader(message);
  if (reader.complete()) return Status();
  return Status::invalid_argument(fmt::format(
      "malformed {} of {} bytes: {}", to_string(frame.type), frame.body.size(),
      reader.failed() ? "a field is missing or out of range" : fmt::format("{} bytes too many", reader.left())));
}

}  // namespace

// ---- All links ----

void encode(const Goodbye& message, WireBytes& bytes) { write(MessageType::kGoodbye, message, bytes); }
void encode(const Ping& message, WireBytes& bytes) { write(MessageType::kPing, message, bytes); }
void encode(const Pong& message, WireBytes& bytes) { write(MessageType::kPong, message, bytes); }

Status decode(const Frame& frame, Goodbye& message) { return read(frame, message); }
Status decode(const Frame& frame, Ping& message) { return read(frame, message); }
Status decode(const Frame& frame, Pong& message) { return read(frame, message); }

// ---- Action link ----

void encode(const Registration& message, WireBytes& bytes) { write(MessageType::kRegistration, message, bytes); }
void encode(const Welcome& message, WireBytes& bytes) { write(MessageType::kWelcome, message, bytes); }
void encode(const Offer& message, WireBytes& bytes) { write(MessageType::kOffer, message, bytes); }
void encode(const Withdrawal& message, WireBytes& bytes) { write(MessageType::kWithdrawal, message, bytes); }
void encode(const Naming& message, WireBytes& bytes) { write(MessageType::kNaming, message, bytes); }
void encode(const Release& message, WireBytes& bytes) { write(MessageType::kRelease, message, bytes); }
void encode(const Action& message, WireBytes& bytes) { write(MessageType::kAction, message, bytes); }
void encode(const Visits& message, WireBytes& bytes) { write(MessageType::kVisits, message, bytes); }
void encode(const Discard& message, WireBytes& bytes) { write(MessageType::kDiscard, message, bytes); }
void encode(const Outcome& message, WireBytes& bytes) { write(MessageType::kOutcome, message, bytes); }
void encode(const Leave& message, WireBytes& bytes) { write(MessageType::kLeave, message, bytes); }

Status decode(const Frame& frame, Registration& message) { return read(frame, message); }
Status decode(const Frame& frame, Welcome& message) { return read(frame, message); }
Status decode(const Frame& frame, Offer& message) { return read(frame, message); }
Status decode(const Frame& frame, Withdrawal& message) { return read(frame, message); }
Status decode(const Frame& frame, Naming& message) { return read(frame, message); }
Status decode(const Frame& frame, Release& message) { return read(frame, message); }
Status decode(const Frame& frame, Action& message) { return read(frame, message); }
Status decode(const Frame& frame, Visits& message) { return read(frame, message); }
Status decode(const Frame& frame, Discard& message) { return read(frame, message); }
Status decode(const Frame& frame, Outcome& message) { return read(frame, message); }
Status decode(const Frame& frame, Leave& message) { return read(frame, message); }

// ---- Request link ----

void encode(const Admission& message, WireBytes& bytes) { write(MessageType::kAdmission, message, bytes); }
void encode(const Models& message, WireBytes& bytes) { write(MessageType::kModels, message, bytes); }
void encode(const Pipelines& message, WireBytes& bytes) { write(MessageType::kPipelines, message, bytes); }
void encode(const Tasks& message, WireBytes& bytes) { write(MessageType::kTasks, message, bytes); }
void encode(const Workers& message, WireBytes& bytes) { write(MessageType::kWorkers, message, bytes); }
void encode(const Request& message, WireBytes& bytes) { write(MessageType::kRequest, message, bytes); }
void encode(const Label& message, WireBytes& bytes) { write(MessageType::kLabel, message, bytes); }
void encode(const Unserved& message, WireBytes& bytes) { write(MessageType::kUnserved, message, bytes); }
void encode(const Cancel& message, WireBytes& bytes) { write(MessageType::kCancel, message, bytes); }
void encode(const Completion& message, WireBytes& bytes) { write(MessageType::kCompletion, message, bytes); }
void encode(const StatisticsRequest& message, WireBytes& bytes) {
  write(MessageType::kStatisticsRequest, message, bytes);
}
void encode(const Statistics& message, WireBytes& bytes) { write(MessageType::kStatistics, message, bytes); }

Status decode(const Frame& frame, Admission& message) { return read(frame, message); }
Status decode(const Frame& frame, Models& message) { return read(frame, message); }
Status decode(const Frame& frame, Pipelines& message) { return read(frame, message); }
Status decode(const Frame& frame, Tasks& message) { return read(frame, message); }
Status decode(const Frame& frame, Workers& message) { return read(frame, message); }
Status decode(const Frame& frame, Request& message) { return read(frame, message); }
Status decode(const Frame& frame, Label& message) { return read(frame, message); }
Status decode(const Frame& frame, Unserved& message) { return read(frame, message); }
Status decode(const Frame& frame, Cancel& message) { return read(frame, message); }
Status decode(const Frame& frame, Completion& message) { return read(frame, message); }
Status decode(const Frame& frame, StatisticsRequest& message) { return read(frame, message); }
Status decode(const Frame& frame, Statistics& message) { return read(frame, message); }

// ---- Data link ----

void encode(const Attach& message, WireBytes& bytes) { write(MessageType::kAttach, message, bytes); }
void encode(const Fetch& message, WireBytes& bytes) { write(MessageType::kFetch, message, bytes); }
void encode(const Inputs& message, WireBytes& bytes) { write(MessageType::kInputs, message, bytes); }
void encode(const Outputs& message, WireBytes& bytes) { write(MessageType::kOutputs, message, bytes); }
void encode(const Consumed& message, WireBytes& bytes) { write(MessageType::kConsumed, message, bytes); }

Status decode(const Frame& frame, Attach& message) { return read(frame, message); }
Status decode(const Frame& frame, Fetch& message) { return read(frame, message); }
Status decode(const Frame& frame, Inputs& message) { return read(frame, message); }
Status decode(const Frame& frame, Outputs& message) { return read(frame, message); }
Status decode(const Frame& frame, Consumed& message) { return read(frame, message); }

// ---- Home link ----

void encode(const HomeOffer& message, WireBytes& bytes) { write(MessageType::kHomeOffer, message, bytes); }
void encode(const Homes& message, WireBytes& bytes) { write(MessageType::kHomes, message, bytes); }
void encode(const HomeCall& message, WireBytes& bytes) { write(MessageType::kHomeCall, message, bytes); }
void encode(const HomeReply& message, WireBytes& bytes) { write(MessageType::kHomeReply, message, bytes); }
void encode(const Leadership& message, WireBytes& bytes) { write(MessageType::kLeadership, message, bytes); }

Status decode(const Frame& frame, HomeOffer& message) { return read(frame, message); }
Status decode(const Frame& frame, Homes& message) { return read(frame, message); }
Status decode(const Frame& frame, HomeCall& message) { return read(frame, message); }
Status decode(const Frame& frame, HomeReply& message) { return read(frame, message); }
Status decode(const Frame& frame, Leadership& message) { return read(frame, message); }

}  // namespace foliot
