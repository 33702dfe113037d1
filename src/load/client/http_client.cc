#include "load/client/http_client.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/connect.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <deque>
#include <functional>
#include <nlohmann/json.hpp>
#include <utility>

#include "foundation/platform/thread.h"
#include "load/client/refusal_reason.h"

namespace foliot {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using Endpoint = asio::ip::tcp::endpoint;
using boost::system::error_code;
using Json = nlohmann::json;

constexpr Duration kExchangeTimeout = Duration::seconds(10);

// One keep-alive connection, opened when first needed and again after an error.
// Threading: all of it on its io_context's thread.
class HttpConnection {
 public:
  // `status` and `body` count when there is no error.
  using Done = std::function<void(error_code, unsigned status, const std::string& body)>;

  HttpConnection(asio::io_context& context, Endpoint endpoint) : stream_(context), endpoint_(std::move(endpoint)) {}

  // One at a time, and given up after `answer_timeout`. `request` outlives the exchange.
  // `done` is called once.
  void exchange(const std::string& request, std::optional<Duration> answer_timeout, Done done) {
    request_ = &request;
    done_ = std::move(done);
    if (answer_timeout) {
      stream_.expires_after(std::chrono::nanoseconds(answer_timeout->nanoseconds()));
    } else {
      stream_.expires_never();
    }
    if (open_) return write();
    stream_.async_connect(endpoint_, [this](error_code error) {
      if (error) return finish(error);
      open_ = true;
      error_code ignored;  // only costs latency if it cannot be set
      stream_.socket().set_option(asio::ip::tcp::no_delay(true), ignored);
      write();
    });
  }

  // Ends the exchange in progress, if any, with an error.
  void close() { stream_.close(); }

 private:
  void write() {
    asio::async_write(stream_, asio::buffer(*request_), [this](error_code error, size_t) {
      if (error) return finish(error);
      read();
    });
  }

  void read() {
    parser_.emplace();
    parser_->body_limit(boost::none);
    http::async_read(stream_, buffer_, *parser_, [this](error_code error, size_t) { finish(error); });
  }

  void finish(error_code error) {
    if (error || !parser_->get().keep_alive()) {
      stream_.close();
      buffer_.clear();
      open_ = false;
    }
    const Done done = std::exchange(done_, nullptr);
    if (error) return done(error, 0, {});
    const auto response = parser_->release();
    done(error, response.result_int(), response.body());
  }

  beast::tcp_stream stream_;
  const Endpoint endpoint_;
  bool open_ = false;
  const std::string* request_ = nullptr;
  Done done_;
  beast::flat_buffer buffer_;
  std::optional<http::response_parser<http::string_body>> parser_;
};

std::string error_text(const std::string& body) {
  const Json json = Json::parse(body, nullptr, false);
  if (json.is_object() && json.contains("error") && json["error"].is_string()) return json["error"].get<std::string>();
  return body;
}

std::string describe_failure(unsigned status, const std::string& body) {
  return fmt::format("HTTP status {}: {}", status, error_text(body));
}

Status to_status(unsigned status, const std::string& body) {
  switch (status) {
    case 200: return Status();
    case 400: return Status::invalid_argument(error_text(body));
    case 404: return Status::not_found(error_text(body));
    case 503: return Status::unavailable(error_text(body));
    default: return Status::internal(describe_failure(status, body));
  }
}

Response to_response(error_code error, unsigned status, const std::string& body) {
  if (error == beast::error::timeout) return {LoadOutcome::kFailed, kNoAnswerInTime};
  if (error == asio::error::operation_aborted) return {LoadOutcome::kFailed, kNoAnswerAtEnd};
  if (error) return {LoadOutcome::kFailed, "connection: " + error.message()};
  switch (status) {
    case 200: return {};
    case 429:
    case 499:
    case 503:
    case 504:
      if (const Refusal refusal = find_refusal(error_text(body)); refusal != Refusal::kNone) {
        return {LoadOutcome::kRefused, std::string(to_string(refusal))};
      }
      break;
    default: break;
  }
  return {LoadOutcome::kFailed, describe_failure(status, body)};
}

std::string encode_header(const InferenceBody& body) {
  Json json;
  json["parameters"]["binary_data_output"] = true;
  if (body.deadline) json["parameters"]["timeout"] = body.deadline->nanoseconds() / 1000;
  if (body.needs.accuracy) json["parameters"]["accuracy"] = *body.needs.accuracy;
  if (body.needs.cost) json["parameters"]["cost"] = *body.needs.cost;
  json["inputs"] = Json::array();
  for (const InputTensor& input : body.inputs) {
    json["inputs"].push_back({{"name", input.name},
                              {"shape", input.shape},
                              {"datatype", input.datatype},
                              {"parameters", {{"binary_data_size", input.bytes.size()}}}});
  }
  return json.dump();
}

// A name as part of a path.
std::string escape(std::string_view name) {
  std::string escaped;
  for (const char c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                       c == '_' || c == '.' || c == '~';
    escaped += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return escaped;
}

// Threads that each run an io_context with their share of the connections.
class HttpClient : public InferenceClient {
 public:
  HttpClient(ServerAddress address, const ClientOptions& options, ResponseSink& sink)
      : address_(std::move(address)), options_(options), sink_(sink) {}
  ~HttpClient() override { stop(); }

  Status connect() override;
  Result<std::vector<ListedModel>> list_models() override;
  Result<ModelDescription> describe(const std::string& model) override;
  PreparedRequest prepare(const InferenceBody& body) override;
  void send(PreparedRequest request, uint64_t tag) override;
  void stop() override;

 private:
  struct Prepared {
    std::string message;
    std::optional<Duration> answer_timeout;
  };
  struct Waiting {
    PreparedRequest request;
    uint64_t tag;
  };
  // Bounded by the generator's limit on what is in flight.
  struct Lane {
    asio::io_context context{1};
    asio::executor_work_guard<asio::io_context::executor_type> work{context.get_executor()};
    std::vector<std::unique_ptr<HttpConnection>> connections;
    std::vector<HttpConnection*> idle;
    std::deque<Waiting> waiting;
    bool stopping = false;
    Thread thread;
  };

  void submit(Lane& lane, Waiting waiting);
  void start_exchange(Lane& lane, HttpConnection& connection, Waiting waiting);
  void abandon(Lane& lane);
  Result<Json> ask(std::string_view verb, std::string_view target, std::string_view body);
  std::string request_head(std::string_view verb, std::string_view target, size_t body_bytes,
                           std::string_view more = "") const;

  const ServerAddress address_;
  const ClientOptions options_;
  ResponseSink& sink_;
  Endpoint endpoint_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::vector<std::unique_ptr<const Prepared>> prepared_;
  std::atomic<uint64_t> turn_{0};
};

Status HttpClient::connect() {
  asio::io_context context;
  asio::ip::tcp::resolver resolver(context);
  error_code error;
  const auto found = resolver.resolve(address_.host, std::to_string(address_.port), error);
  if (error || found.empty()) {
    return Status::invalid_argument(fmt::format("no such host: '{}': {}", address_.host, error.message()));
  }
  // A name may stand for several addresses, and the server may listen on one.
  asio::ip::tcp::socket probe(context);
  endpoint_ = asio::connect(probe, found, error);
  if (error) {
    return Status::unavailable(fmt::format("no HTTP server answers at {}: {}; start one with 'foliot serve'",
                                           address_.to_string(), error.message()));
  }
  const uint32_t threads = std::min(options_.threads, options_.connections);
  for (uint32_t i = 0; i < threads; ++i) lanes_.push_back(std::make_unique<Lane>());
  for (uint32_t i = 0; i < options_.connections; ++i) {
    Lane& lane = *lanes_[i % threads];
    lane.connections.push_back(std::make_unique<HttpConnection>(lane.context, endpoint_));
    lane.idle.push_back(lane.connections.back().get());
  }
  for (uint32_t i = 0; i < threads; ++i) {
    FOLIOT_ASSIGN_OR_RETURN(lanes_[i]->thread, Thread::start({.name = fmt::format("client-{}", i)},
                                                             [&context = lanes_[i]->context] { context.run(); }));
  }
  return Status();
}

std::string HttpClient::request_head(std::string_view verb, std::string_view target, size_t body_bytes,
                                     std::string_view more) const {
  return fmt::format("{} {} HTTP/1.1\r\nHost: {}\r\nContent-Length: {}\r\n{}\r\n", verb, target, address_.to_string(),
                     body_bytes, more);
}

// Asks something of the server and waits for it.
Result<Json> HttpClient::ask(std::string_view verb, std::string_view target, std::string_view body) {
  asio::io_context context;
  HttpConnection connection(context, endpoint_);
  const std::string request = request_head(verb, target, body.size()) + std::string(body);
  Status status;
  Json json;
  connection.exchange(request, kExchangeTimeout, [&](error_code error, unsigned code, const std::string& text) {
    status = error ? Status::unavailable(error.message()) : to_status(code, text);
    json = Json::parse(text, nullptr, false);
  });
  context.run();
  if (status.ok() && json.is_discarded()) status = Status::internal("the server's answer is not JSON");
  if (!status.ok()) return status.with_context(fmt::format("{} {}", verb, target));
  return json;
}

Result<std::vector<ListedModel>> HttpClient::list_models() {
  FOLIOT_ASSIGN_OR_RETURN(const Json index, ask("POST", "/v2/repository/index", "{}"));
  std::vector<ListedModel> models;
  try {
    for (const Json& entry : index) {
      models.push_back({entry.at("name").get<std::string>(), entry.value("version", ""),
                        entry.at("state").get<std::string>(), entry.value("reason", "")});
    }
  } catch (const Json::exception& exception) {
    return Status::internal(fmt::format("the server's list of models is malformed: {}", exception.what()));
  }
  return models;
}

Result<ModelDescription> HttpClient::describe(const std::string& model) {
  FOLIOT_ASSIGN_OR_RETURN(const Json json, ask("GET", "/v2/models/" + escape(model), ""));
  ModelDescription description{.name = model, .inputs = {}};
  try {
    for (const Json& input : json.at("inputs")) {
      description.inputs.push_back({input.at("name").get<std::string>(), input.at("datatype").get<std::string>(),
                                    input.at("shape").get<std::vector<int64_t>>()});
    }
  } catch (const Json::exception& exception) {
    return Status::internal(fmt::format("model '{}': the server's metadata is malformed: {}", model, exception.what()));
  }
  return description;
}

PreparedRequest HttpClient::prepare(const InferenceBody& body) {
  const std::string header = encode_header(body);
  size_t bytes = header.size();
  for (const InputTensor& input : body.inputs) bytes += input.bytes.size();
  std::string request = request_head(
      "POST", fmt::format("/v2/models/{}/infer", escape(body.model)), bytes,
      fmt::format("Content-Type: application/octet-stream\r\nInference-Header-Content-Length: {}\r\n", header.size()));
  request.reserve(request.size() + bytes);
  request += header;
  for (const InputTensor& input : body.inputs) request += input.bytes;
  prepared_.push_back(std::make_unique<const Prepared>(Prepared{std::move(request), body.answer_timeout}));
  return PreparedRequest(static_cast<uint32_t>(prepared_.size() - 1));
}

void HttpClient::send(PreparedRequest request, uint64_t tag) {
  Lane& lane = *lanes_[turn_.fetch_add(1, std::memory_order_relaxed) % lanes_.size()];
  asio::post(lane.context, [this, &lane, request, tag] { submit(lane, {request, tag}); });
}

void HttpClient::submit(Lane& lane, Waiting waiting) {
  if (lane.stopping) {
    sink_.on_response(waiting.tag, {LoadOutcome::kFailed, kNoAnswerAtEnd});
  } else if (lane.idle.empty()) {
    lane.waiting.push_back(waiting);
  } else {
    HttpConnection& connection = *lane.idle.back();
    lane.idle.pop_back();
    start_exchange(lane, connection, waiting);
  }
}

void HttpClient::start_exchange(Lane& lane, HttpConnection& connection, Waiting waiting) {
  const Prepared& prepared = *prepared_.at(waiting.request.value());
  connection.exchange(prepared.message, prepared.answer_timeout,
                      [this, &lane, &connection, waiting](error_code error, unsigned status, const std::string& body) {
                        sink_.on_response(waiting.tag, to_response(error, status, body));
                        if (lane.waiting.empty()) {
                          lane.idle.push_back(&connection);
                        } else {
                          const Waiting next = lane.waiting.front();
                          lane.waiting.pop_front();
                          start_exchange(lane, connection, next);
                        }
                      });
}

void HttpClient::abandon(Lane& lane) {
  lane.stopping = true;
  for (const Waiting& waiting : std::exchange(lane.waiting, {})) {
    sink_.on_response(waiting.tag, {LoadOutcome::kFailed, kNoAnswerAtEnd});
  }
  for (const auto& connection : lane.connections) connection->close();
  lane.work.reset();  // run() returns when the closed connections' handlers have
}

void HttpClient::stop() {
  for (const auto& lane : lanes_) {
    asio::post(lane->context, [this, &lane = *lane] { abandon(lane); });
  }
  for (const auto& lane : lanes_) lane->thread.join();
  lanes_.clear();
}

}  // namespace

std::unique_ptr<InferenceClient> make_http_client(const ServerAddress& address, const ClientOptions& options,
                                                  ResponseSink& sink) {
  return std::make_unique<HttpClient>(address, options, sink);
}

}  // namespace foliot
