// The messages of Foliot's links that core/ does not define.
//
// Whoever connects is a guest, the controller is the host. There is one time
// domain on the wire, the host's clock; guests convert (transport/clock_offset.h).
//
//   action link, a worker and the controller:
//     worker      Ping..., Registration,          Outcome..., Offer..., Withdrawal..., Leave
//     controller  Pong...,               Welcome, Action..., Naming..., Release...
//   request link, a client (a front end, a load generator) and the controller:
//     client                             Ping..., Label, Request..., Cancel..., StatisticsRequest...
//     controller  Admission, Models..., Workers..., Pong..., Completion..., Statistics...
//   data link, a client and a worker, past the controller:
//     client      Attach, Ping..., Inputs...
//     worker              Pong..., Fetch..., Outputs...
//
// A worker offers models and withdraws them as its repository changes; a change takes
// effect when all workers have made it. It runs what it has withdrawn until it is
// released from it: so a new version takes the place of an old one without a refusal.
//
// A worker that is given an INFER fetches its rows' inputs from the clients whose
// requests they are, and sends them the outputs before it reports the outcome. A
// request's outputs count only once the controller has said which action answers
// it: after a worker was given up, two of them may send some for one request.
//
// Either side may say Goodbye, with the reason, before it closes.
#ifndef FOLIOT_TRANSPORT_MESSAGE_H_
#define FOLIOT_TRANSPORT_MESSAGE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "core/call_label.h"
#include "core/ids.h"
#include "core/model_info.h"
#include "core/request.h"

namespace foliot {

// Changes with every change of a message; two versions do not talk to each other.
inline constexpr uint16_t kWireVersion = 7;

enum class Role : uint8_t { kController, kWorker, kClient };
std::string_view to_string(Role role);  // "controller", "worker", "client"

// The kinds of frames, by the number that stands in them.
enum class MessageType : uint8_t {
  kGoodbye,
  kPing,
  kPong,
  kRegistration,
  kWelcome,
  kAction,
  kOutcome,
  kModels,
  kRequest,
  kCancel,
  kCompletion,
  kStatisticsRequest,
  kStatistics,
  kLeave,
  kAdmission,
  kWorkers,
  kAttach,
  kFetch,
  kInputs,
  kOutputs,
  kOffer,
  kWithdrawal,
  kNaming,
  kRelease,
  kLabel,
};
inline constexpr MessageType kMessageTypeLast = MessageType::kLabel;
std::string_view to_string(MessageType type);  // "GOODBYE", ...

struct Goodbye {
  std::string reason;
};

struct Ping {
  TimePoint sent;  // on the guest's clock
};

struct Pong {
  TimePoint ping_sent;  // as in the Ping
  TimePoint host_time;  // when the host answered
};

// What a worker brings.
struct Registration {
  std::string worker;                 // its name, for people
  std::string data_address;           // HOST:PORT where clients reach it; empty: it needs no inputs
  std::vector<uint32_t> page_counts;  // of each of its devices
  // Every device can run all of them. Ids are the worker's own. Of several of one name
  // the first is the one to serve, if none is served yet.
  std::vector<ModelInfo> models;
  // Of each of its devices: the positions in `models`, ascending, of those that its
  // pages hold. Nothing that it was told before is under way any more.
  std::vector<std::vector<uint32_t>> residents;
};

// The name of a model that the controller does not speak of.
inline constexpr ModelId kUnnamed = ModelId(UINT32_MAX);

// The names by which the controller will speak of it, in the same order; kUnnamed for
// models that not all workers have. The worker empties the pages of these by itself.
struct Welcome {
  std::vector<DeviceId> devices;
  std::vector<ModelId> models;
};

// The worker can run one more. Its id is the worker's own, and new.
struct Offer {
  ModelInfo model;
};

// The worker's repository does not have it any more.
struct Withdrawal {
  ModelId model;  // the worker's own
};

// All workers have it: by this name the controller speaks of it from now on.
struct Naming {
  ModelId model;  // the worker's own
  ModelId name;
};

// The controller does not speak of it any more, and no page holds it: what was
// withdrawn may be forgotten.
struct Release {
  ModelId model;  // the worker's own
};

// The worker finishes what it has been given; it is to be given no more.
struct Leave {};

// The number by which workers know the client: the top bits of its requests' ids
// within the controller (transport/client_ids.h).
struct Admission {
  uint16_t client = 0;
};

// What can be asked for; sent at the beginning, and whenever it changes.
struct Models {
  std::vector<ModelInfo> models;
};

// Who answers requests; sent at the beginning, and whenever it changes.
struct Workers {
  struct Worker {
    std::string name;
    std::string data_address;  // HOST:PORT; empty: it sends no outputs
    std::vector<DeviceId> devices;
  };
  std::vector<Worker> workers;
};

struct Cancel {
  RequestId request;
  Refusal reason = Refusal::kCancelled;  // or kOverload
};

// What a front end's client calls the request that follows; sent of no others.
struct Label {
  RequestId request;
  CallLabel label;
};

struct StatisticsRequest {};

struct Quantiles {
  Duration p50;
  Duration p99;
  Duration p999;
  Duration max;
};

// What the controller did since it was last asked, or since it began.
struct Statistics {
  Duration elapsed;
  uint32_t devices = 0;
  uint64_t requests = 0;
  uint64_t served = 0;
  uint64_t actions = 0;
  // How long the policy took to decide, once a turn of the loop, by the wall clock.
  uint64_t decisions = 0;
  Quantiles decision;
  // Of some of the turns, by the processor time of the thread: without what others did
  // on its core meanwhile.
  Quantiles decision_processor;
  Duration processor_time;  // of the controller's thread
  // Through all of the controller's sockets, since it began.
  uint64_t bytes_received = 0;
  uint64_t bytes_sent = 0;
};

// The client with this number is at the other end, in place of whoever was before.
struct Attach {
  uint16_t client = 0;
};

// What a row's inputs or outputs are, one after another in the model's order, each
// whole. Of a received message they lie in its frame.
using TensorBytes = std::vector<std::span<const std::byte>>;

// Asks for the inputs of a row. Ids are the client's own.
struct Fetch {
  ActionId action;
  RequestId request;
  PayloadHandle payload;
};

// No tensors: the request is over, nobody waits for its outputs.
struct Inputs {
  ActionId action;
  RequestId request;
  TensorBytes tensors;
};

// What an action made of a row. No tensors: nothing, its inputs did not come.
struct Outputs {
  ActionId action;
  RequestId request;
  PayloadHandle payload;
  TensorBytes tensors;
};

}  // namespace foliot

#endif  // FOLIOT_TRANSPORT_MESSAGE_H_
