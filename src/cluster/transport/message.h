// Messages of Foliot's links that core/ does not define.
//
// The side that connects is the client of a link, the side that listens the server.
// There is one time domain on the wire, the server's clock; clients convert
// (cluster/transport/clock_offset.h).
//
//   action link, a worker and the controller:
//     worker      Ping..., Registration,          Outcome..., Offer..., Withdrawal..., Unserved..., Pipelines...,
//                                                 Tasks...,
//                                                 Leave
//     controller  Pong...,               Welcome, Visits, Action..., Naming..., Release..., Workers..., Discard...
//   request link, a client (a front end, a load generator) and the controller:
//     client                             Ping..., Label, Request..., Cancel..., StatisticsRequest..., HomeOffer
//     controller  Admission, Models..., Pipelines..., Tasks..., Unserved..., Workers..., Pong..., Completion...,
//                 Statistics..., Homes...
//   data link, a client and a worker, past the controller:
//     client      Attach, Ping..., Inputs..., Consumed...
//     worker              Pong..., Fetch..., Outputs...
//   holder link, a worker and another that holds outputs of which it is to make inputs:
//     worker      Ping..., Fetch...
//     holder      Pong..., Inputs...
//   home link, a front end that keeps users of personal models and another:
//     caller      Ping..., HomeCall...
//     home        Pong..., HomeReply...
//
// A worker offers models and withdraws them as its repository changes; a change takes
// effect when all workers have made it. It runs what it has withdrawn until it is
// released from it: so a new version takes the place of an old one without a refusal.
//
// A worker that is given an INFER fetches its rows' inputs from the clients whose
// requests they are, and sends them the outputs before it reports the outcome. A
// request's outputs count only once the controller has named the action that answers
// it: after a worker was fenced, two of them may send some for one request.
//
// Of a request that announced consumers the worker holds the outputs, and sends a
// reference to them in their place. A row whose inputs are such a reference gets them
// from there: from the worker's own memory, or with a Fetch from the worker that holds
// them. The client sends Consumed for every such request that is over.
//
// A row may be a visit of a pipeline's stage (foundation/core/stage_visit.h): Visits precedes its
// Action. Each of its inputs comes from the client's call or is an output of an earlier
// visit, which the worker of that visit holds until the controller sends it Discard. Outputs
// that the client may get are sent to it, and count with the completion of the run.
//
// A request may name a task in place of a model, and say what it needs. The controller chooses the model, for all
// rows of a call, and names it in each Completion.
//
// Of several controllers one leads (cluster/election). Workers and clients have a link to each. One that stands by says
// so in its greeting, answers pings, and sends Leadership when it leads; what stands above follows then. Workers and
// clients obey the highest epoch that they have seen, and close links with lower ones.
//
// Either side may send Goodbye, with the reason, before it closes.
#ifndef FOLIOT_CLUSTER_TRANSPORT_MESSAGE_H_
#define FOLIOT_CLUSTER_TRANSPORT_MESSAGE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "foundation/base/time.h"
#include "foundation/core/call_label.h"
#include "foundation/core/ids.h"
#include "foundation/core/model_info.h"
#include "foundation/core/payload.h"
#include "foundation/core/request.h"
#include "foundation/core/tensor_part.h"
#include "foundation/core/user_digest.h"
#include "foundation/core/visit_order.h"

namespace foliot {

// Changes with every change of a message; two versions cannot communicate.
inline constexpr uint16_t kWireVersion = 27;

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
  kUnserved,
  kConsumed,
  kPipelines,
  kVisits,
  kDiscard,
  kTasks,
  kHomeOffer,
  kHomes,
  kHomeCall,
  kHomeReply,
  kLeadership,
};
inline constexpr MessageType kMessageTypeLast = MessageType::kLeadership;
std::string_view to_string(MessageType type);  // "GOODBYE", ...

struct Goodbye {
  std::string reason;
};

// A controller that stood by leads from now on.
struct Leadership {
  uint64_t epoch = 0;
};

struct Ping {
  TimePoint sent;  // on the client's clock
};

struct Pong {
  TimePoint ping_sent;    // as in the Ping
  TimePoint server_time;  // when the server answered
};

// What a worker reports when it registers.
struct Registration {
  std::string worker;                 // its name, for people
  std::string kind{kDefaultKind};     // of all its devices
  std::string data_address;           // HOST:PORT where clients reach it; empty: it needs no inputs
  std::vector<uint32_t> page_counts;  // of each of its devices
  std::vector<uint32_t> lane_counts;  // likewise, 1 to kLanesMax
  // Likewise, 1 to kContextsMax: how many unfinished batches it holds.
  std::vector<uint32_t> context_counts;
  // Every device can run all of them; each has one Runnable, of this kind. Ids are the worker's own. Of several of one
  // name the first is the one to serve, if none is served yet.
  std::vector<ModelInfo> models;
  // Of each of its devices: the positions in `models`, ascending, of those that its
  // pages hold. No action that it was given before is under way any more.
  std::vector<std::vector<uint32_t>> residents;
  // For what stages of pipelines compute.
  uint64_t held_bytes = 0;
  uint64_t held_payloads = 0;
};

// The id of a model that the controller does not use.
inline constexpr ModelId kUnnamed = ModelId(UINT32_MAX);

// The ids that the controller will use, in the same order; kUnnamed for models that not
// all workers have. The worker empties the pages of these by itself.
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

// All workers have it: the controller uses this id from now on.
struct Naming {
  ModelId model;  // the worker's own
  ModelId name;
};

// The controller does not use it any more, and no page holds it: what was withdrawn may
// be forgotten.
struct Release {
  ModelId model;  // the worker's own
};

// The worker finishes its actions; it gets no more.
struct Leave {};

// The number by which workers know the client: the top bits of its requests' ids
// within the controller (cluster/transport/client_ids.h).
struct Admission {
  uint16_t client = 0;
};

// The models that can be asked for; sent at the beginning, and at every change.
struct Models {
  std::vector<ModelInfo> models;
};

// All models that should be served and cannot, with the reason. A worker sends those of
// its repository after its registration and whenever they change, the controller those of
// all workers to its clients.
struct Unserved {
  struct Model {
    std::string name;
    std::string version;
    std::string reason;
  };
  std::vector<Model> models;  // by name, each once
};
// A reason is cut off after so many bytes, and the list after so many models.
inline constexpr size_t kReasonBytesMax = 512;
inline constexpr size_t kUnservedMax = 8192;

// The workers that answer requests; sent to clients, and to workers that have an address,
// at the beginning, and at every change.
struct Workers {
  struct Worker {
    std::string name;
    std::string data_address;  // HOST:PORT; empty: it sends no outputs, and holds none
    std::vector<DeviceId> devices;
  };
  std::vector<Worker> workers;
};

// The pipelines of a worker's repository, sent after its registration and whenever they
// change; and those that clients can ask for, whose stages are among the Models that were sent
// last: sent at the beginning, and at every change.
struct Pipelines {
  struct Pipeline {
    PipelineId id;  // the controller's, never used again; of a worker: none
    std::string name;
    std::vector<std::string> lines;  // of its pipeline.toml
  };
  std::vector<Pipeline> pipelines;
};

// The tasks, likewise: variants are among the Models that were sent last.
struct Tasks {
  struct Task {
    ServedTaskId id;  // as that of a pipeline
    std::string name;
    std::vector<std::string> lines;         // of its task.toml
    std::vector<std::string> accuracies{};  // of the file that it names for them; none: it names none
  };
  std::vector<Task> tasks;
};

// Of each of these lists, and of the lines of one file.
inline constexpr size_t kDefinitionsMax = 4096;
inline constexpr size_t kDefinitionLinesMax = 4096;

// What the rows of the Action that follows are that are visits of stages.
struct Visits {
  struct Visit {
    uint32_t row = 0;
    VisitOrder order;
  };
  ActionId action;
  std::vector<Visit> visits;  // by row
};

// No stage takes the outputs of this visit any more.
struct Discard {
  RequestId visit;
};

struct Cancel {
  RequestId request;
  Refusal reason = Refusal::kCancelled;  // or kOverload
};

// The client's own id of the request that follows, and its place in a trace; sent only if there is either.
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

// The client with this number is at the other end, in place of an earlier one.
struct Attach {
  uint16_t client = 0;
  uint64_t epoch = 0;  // of the controller that gave it the number
};

// What a row's inputs or outputs are, one after another in the model's order, each
// whole. Of a received message they lie in its frame.
using TensorBytes = std::vector<std::span<const std::byte>>;

// Asks for the inputs of a row. To a client: the request's id is its own. To a holder: it
// is the controller's, and the payload is one of the same client's.
struct Fetch {
  ActionId action;
  RequestId request;
  PayloadHandle payload;
  // Of a row that is a visit. To a client: 0, for inputs of the call. To a holder: the slot
  // of an earlier visit of the run, and one, for outputs of that; there is no payload.
  uint32_t source = 0;
  std::vector<uint32_t> tensors{};  // their positions; none: all
  std::vector<TensorPart> taken{};  // what of these; none: all of them
};

// No tensors. Of a client: the request is over, its outputs are not needed any more. Of a
// holder: it does not hold such a payload of that client's, any more.
struct Inputs {
  ActionId action;
  RequestId request;
  TensorBytes tensors;
  uint32_t source = 0;  // of the Fetch
};

// The result of an action for a row. No tensors: they are held there, or there are none,
// for this reason. Of a visit: the outputs that the client may get (answers_of()).
struct Outputs {
  ActionId action;
  RequestId request;
  PayloadHandle payload;
  TensorBytes tensors{};
  PayloadReference held{};
  std::string detail{};
};

// So many of the consumers of a payload that the worker holds for the client are over.
struct Consumed {
  PayloadHandle payload;
  uint16_t consumers = 0;
};

// The front end keeps users of personal models. The controller names all that do in Homes, to each of them.
struct HomeOffer {
  std::string name;     // stays the same when the front end is restarted
  std::string address;  // HOST:PORT where other front ends reach it
};

// The front ends that keep users, sent whenever they change. Each user has its homes among them
// (cluster/sessions/home_view.h).
struct Homes {
  uint64_t epoch = 0;            // of this list: another list has another one
  std::vector<HomeOffer> homes;  // by name, each once
};
inline constexpr size_t kHomesMax = 1024;
inline constexpr size_t kHomeNameBytesMax = 256;

enum class HomeCallKind : uint8_t {
  kCall,     // a client's call; `bytes` is the call, and those of the reply its answer
  kMerge,    // keep this copy of a user
  kDigests,  // which of these users are to be sent?
  kPull,     // a copy of the user, unless it is equal to the digest
  kDone,     // the caller has handed over all that it keeps
  kFacts,    // what says when the model is to be retrained; `bytes` of the reply
  kExport,   // copies of users whose first home it is and no home the caller, in passes: `user` is that of the reply
             // before, 0 begins one. `users` of the reply is empty where the pass is over
};

// A front end asks another one. Both must have the same Homes.
struct HomeCall {
  uint64_t id = 0;  // the caller's
  uint64_t epoch = 0;
  HomeCallKind kind = HomeCallKind::kCall;
  bool changes = false;  // of kCall: it is no read
  std::string model{};
  uint64_t user = 0;
  Duration timeout{};                 // the reply is of use for so long
  std::vector<UserDigest> digests{};  // of kDigests; one, of kPull
  std::string caller{};               // its name
  std::span<const std::byte> bytes{};
};

enum class HomeOutcome : uint8_t {
  kDone,
  kStale,   // Homes differ, or the user has another home: ask again
  kBehind,  // of kMerge: the user was forgotten since the copy was made
  kFailed,  // `bytes` is the reason
};

struct HomeReply {
  uint64_t id = 0;
  HomeOutcome outcome = HomeOutcome::kDone;
  std::vector<uint64_t> users{};  // of kDigests: that are to be sent
  std::span<const std::byte> bytes{};
};

}  // namespace foliot

#endif  // FOLIOT_CLUSTER_TRANSPORT_MESSAGE_H_
