// InferenceClient: the part of the Open Inference Protocol v2 that the load generator
// needs, the same over gRPC and over HTTP.
//
// Requests are encoded once, by prepare(), and sent any number of times, so that
// the generator costs little beside what it measures.
//
// Threading: connect(), list_models(), ready_models(), describe(), prepare() and stop() belong to
// one thread; send() may come from any, also from within on_response(), once the
// last prepare() has returned. on_response() comes from the client's own threads.
#ifndef FOLIOT_LOAD_CLIENT_INFERENCE_CLIENT_H_
#define FOLIOT_LOAD_CLIENT_INFERENCE_CLIENT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "foundation/base/id.h"
#include "foundation/base/status.h"
#include "foundation/base/time.h"
#include "load/workload/load_report.h"

namespace foliot {

struct TensorDescription {
  std::string name;
  std::string datatype;        // the protocol's: "FP32", "INT64", ...
  std::vector<int64_t> shape;  // -1: variable; of a model that batches, the first is the rows
};

struct ListedModel {
  std::string name;
  std::string version;
  std::string state;  // "READY", "LOADING", "UNLOADING", "UNAVAILABLE"
  std::string reason;
  bool ready() const { return state == "READY"; }
  // Since a client asked for it: it could be served.
  bool unloaded() const { return state == "UNAVAILABLE" && reason == "unloaded"; }
};

struct ModelDescription {
  std::string name;
  std::vector<TensorDescription> inputs;
};

struct InputTensor {
  std::string name;
  std::string datatype;
  std::vector<int64_t> shape;
  std::string bytes;  // little-endian, row-major
};

// What a request for a task needs; nullopt: whatever the task says.
struct TaskNeeds {
  std::optional<double> accuracy;  // at least
  std::optional<double> cost;      // at most, of a row, in dollars
};

struct InferenceBody {
  std::string model;
  std::vector<InputTensor> inputs;
  TaskNeeds needs;                   // sent as parameters of these names
  std::optional<Duration> deadline;  // sent as the parameter `timeout`
  // Without an answer for so long the request is given up; nullopt: never, and then
  // no deadline of the transport's own is sent either.
  std::optional<Duration> answer_timeout;
};

using PreparedRequest = Id<struct PreparedRequestTag, uint32_t>;

struct Response {
  LoadOutcome outcome = LoadOutcome::kAnswered;  // never kUnsent
  std::string reason;                            // empty when answered
};

// Reasons of kFailed that mean the same over every protocol.
inline constexpr const char* kNoAnswerInTime = "no answer within the client's timeout";
inline constexpr const char* kNoAnswerAtEnd = "no answer before the client was stopped";

class ResponseSink {
 public:
  virtual ~ResponseSink() = default;
  // Once for each send().
  virtual void on_response(uint64_t tag, const Response& response) = 0;
};

enum class ClientProtocol : uint8_t { kGrpc, kHttp };

struct ClientOptions {
  ClientProtocol protocol = ClientProtocol::kGrpc;
  std::string url = "127.0.0.1:8001";  // host:port
  // gRPC multiplexes its calls over so many; HTTP opens up to so many, and
  // further requests wait in the client for a free one.
  uint32_t connections = 4;
  uint32_t threads = 1;  // that receive; at most one per connection
};

class InferenceClient {
 public:
  virtual ~InferenceClient() = default;

  // Starts the threads and finds the server. Errors: kUnavailable, kInvalidArgument.
  virtual Status connect() = 0;
  // All models of the server, by its repository index.
  virtual Result<std::vector<ListedModel>> list_models() = 0;
  // Names of those that are ready.
  Result<std::vector<std::string>> ready_models();
  virtual Result<ModelDescription> describe(const std::string& model) = 0;

  virtual PreparedRequest prepare(const InferenceBody& body) = 0;
  // Does not wait. `tag` comes back with the response.
  virtual void send(PreparedRequest request, uint64_t tag) = 0;

  // Gives up what is in flight (kFailed) and joins the threads; when it returns
  // every response has been delivered. The destructor does the same.
  virtual void stop() = 0;
};

// `sink` outlives the client. Errors: kInvalidArgument if the URL makes no sense.
Result<std::unique_ptr<InferenceClient>> make_client(const ClientOptions& options, ResponseSink& sink);

}  // namespace foliot

#endif  // FOLIOT_LOAD_CLIENT_INFERENCE_CLIENT_H_
