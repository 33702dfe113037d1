#include "edge/http/http_server.h"

#include <fmt/format.h>
#include <linux/sockios.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <deque>
#include <optional>
#include <span>
#include <thread>
#include <unordered_set>

#include "answer/inference/call_error.h"
#include "edge/http/decode_queue.h"
#include "edge/http/http_stream.h"
#include "edge/requests/answer_budget.h"
#include "edge/requests/body_budget.h"
#include "edge/requests/error_json.h"
#include "edge/requests/frontend_timeouts.h"
#include "edge/requests/inflate.h"
#include "edge/requests/listener.h"
#include "edge/requests/spare_descriptor.h"
#include "foundation/base/check.h"
#include "foundation/base/heap.h"
#include "foundation/base/idle_evictions.h"
#include "foundation/base/mutex.h"
#include "foundation/platform/release_thread.h"
#include "foundation/platform/thread.h"

namespace foliot {
namespace {

namespace net = boost::asio;
namespace http = boost::beast::http;
using boost::system::error_code;
using net::ip::tcp;

// The JSON parser reads this far past the end; reserved at once, the body need
// not be moved for it.
constexpr size_t kBodyPadding = 64;
// Of a body, at a time: as much as has come, within these bounds.
constexpr size_t kReadBytesMin = 16 << 10;
constexpr size_t kReadBytesMax = 128 << 10;
// A body that has become so long gets room for all of it, so that it is moved once.
constexpr size_t kMovedBytes = 1 << 20;
// What most requests fit into: read at once on a connection that has had one.
constexpr size_t kRequestBytes = 4 << 10;
constexpr size_t kEvictablePart = 16;  // one of so many may be evicted until the next check
// After an answer that ends a connection, so much of what still comes is read.
constexpr uint64_t kLingerBytesMax = 128 << 20;
constexpr size_t kLingerReadBytes = 64 << 10;
// Parsed within a millisecond, and so by the thread that answers.
constexpr uint64_t kParsedHereBytesMax = 16 << 10;
constexpr int kDecodeNiceness = 5;  // below that of the threads that answer
constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
constexpr std::string_view kTooManyConnections =
    "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n";

HttpResponse error_response(unsigned status, std::string message) {
  CallError error;
  error.http_status = status;
  error.message = std::move(message);
  HttpResponse response;
  response.status = status;
  response.body.push_back(to_json(error));
  return response;
}

std::string_view view(boost::beast::string_view text) { return {text.data(), text.size()}; }

// The path and query of a target; a client may send the whole URL, as to a proxy.
std::string_view origin_form(std::string_view target) {
  const size_t scheme = target.find("://");
  if (target.starts_with('/') || scheme == std::string_view::npos) return target;
  const size_t path = target.find('/', scheme + 3);
  return path == std::string_view::npos ? "/" : target.substr(path);
}

std::string head_of(const HttpResponse& response, bool keep_alive, unsigned version) {
  size_t body_bytes = 0;
  for (const std::string& piece : response.body) body_bytes += piece.size();
  std::string head = fmt::format("HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\n", response.status,
                                 view(http::obsolete_reason(static_cast<http::status>(response.status))),
                                 response.content_type, body_bytes);
  for (const auto& [name, value] : response.headers) head += fmt::format("{}: {}\r\n", name, value);
  if (!keep_alive) head += "Connection: close\r\n";
  if (keep_alive && version < 11) head += "Connection: keep-alive\r\n";
  head += "\r\n";
  return head;
}

Result<std::unique_ptr<HttpStream::TlsContext>> make_tls_context(const TlsIdentity& identity) {
  auto tls = std::make_unique<HttpStream::TlsContext>(HttpStream::TlsContext::tls_server);
  error_code error;
  const auto use = [&](auto step) {
    if (!error) step();
  };
  use([&] { tls->set_options(HttpStream::TlsContext::no_tlsv1 | HttpStream::TlsContext::no_tlsv1_1, error); });
  use([&] { tls->use_certificate_chain(net::buffer(identity.certificate), error); });
  use([&] { tls->use_private_key(net::buffer(identity.private_key), HttpStream::TlsContext::pem, error); });
  // Needed for sessions to be resumed where certificates are asked for.
  SSL_CTX_set_session_id_context(tls->native_handle(), reinterpret_cast<const unsigned char*>("foliot"), 6);
  if (!identity.peer_authority.empty()) {
    use([&] { tls->add_certificate_authority(net::buffer(identity.peer_authority), error); });
    use([&] { tls->set_verify_mode(net::ssl::verify_peer | net::ssl::verify_fail_if_no_peer_cert, error); });
  }
  if (error) return Status::invalid_argument(fmt::format("TLS: {}", error.message()));
  return tls;
}

}  // namespace

// The thread that decodes bodies and does what else takes long, made when there is something to do.
class Decoder {
 public:
  explicit Decoder(std::function<TimePoint()> now) : now_(std::move(now)) {}
  ~Decoder() { stop(); }
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  void add(const std::string& source, DecodeQueue::Work work) {
    {
      const MutexLock lock(mutex_);
      queue_.add(source, std::move(work));
      if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
    }
    changed_.notify_one();
  }
  // What has not begun is dropped. The owner's thread, or after it.
  void stop() {
    {
      MutexLock lock(mutex_);
      stopping_ = true;
      changed_.notify_one();
    }
    if (thread_.joinable()) thread_.join();
  }

 private:
  void run() {
    pthread_setname_np(pthread_self(), "foliot-decode");
    // It computes for long, so those that answer go before it; what starts it has short slices, which it would inherit.
    use_default_slices();
    setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + kDecodeNiceness);
    MutexLock lock(mutex_);
    while (!stopping_) {
      std::optional<DecodeQueue::Piece> piece = queue_.take();
      if (!piece) {
        changed_.wait(mutex_);
        continue;
      }
      lock.unlock();
      const TimePoint began = now_();
      piece->work();
      const Duration spent = now_() - began;
      piece->work = nullptr;
      lock.lock();
      queue_.charge(piece->source, spent);
    }
  }

  const std::function<TimePoint()> now_;
  Mutex mutex_;
  Condition changed_;
  DecodeQueue queue_ GUARDED_BY(mutex_);
  bool stopping_ GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

struct HttpServer::State {
  State(HttpServerOptions given, HttpHandler& given_handler, std::function<TimePoint()> given_now)
      : options(std::move(given)),
        handler(given_handler),
        now(std::move(given_now)),
        evictions(kFrontendTimeouts.eviction_check, options.connections_max / kEvictablePart + 1),
        bodies(options.bodies_bytes_max),
        answers(options.bodies_bytes_max),
        decoder(now) {}

  Status prepare_tls();
  Status bind();
  void accept();
  void accept_later();
  void add_long_read(std::shared_ptr<Session> session);
  void serve_long_read();
  bool make_room();
  bool evict_idle();
  void find_evictable(TimePoint instant);
  void sweep();
  void run();

  const HttpServerOptions options;
  HttpHandler& handler;
  const std::function<TimePoint()> now;
  IdleEvictions<std::weak_ptr<Session>> evictions;
  BodyBudget bodies;     // outlives the context, and so every session
  AnswerBudget answers;  // likewise
  net::io_context context{1};
  std::unique_ptr<HttpStream::TlsContext> tls;  // null: plain
  std::unordered_set<std::shared_ptr<Session>> sessions;
  std::deque<std::shared_ptr<Session>> long_reads;  // whose bodies have more to read; served while there are any
  tcp::acceptor acceptor{context};
  net::steady_timer sweep_timer{context};
  net::steady_timer accept_timer{context};
  SpareDescriptor spare;
  bool accepting = false;
  uint16_t port = 0;
  std::thread thread;
  ReleaseThread releases;
  Decoder decoder;  // its work holds sessions
};

// One connection. Held by the server until it is closed and all responses are out or
// dropped; held by its own handlers while an operation is under way.
class HttpServer::Session final : public HttpExchange, public std::enable_shared_from_this<Session> {
 public:
  Session(State& server, tcp::socket socket) : server_(server), stream_(std::move(socket), server.tls.get()) {}
  ~Session() {
    server_.bodies.resize(body_source_, body_bytes_held_, 0);
    release_answer();
  }

  void start();
  void read_in_turn();
  void check_time(TimePoint now);
  // Between requests since then; nullopt: not between requests.
  std::optional<TimePoint> idle_since() const;
  void close();

  std::string_view method() const override { return view(parser_->get().method_string()); }
  std::string_view target() const override { return origin_form(view(parser_->get().target())); }
  std::string_view header(std::string_view name) const override {
    return view(parser_->get()[boost::beast::string_view(name.data(), name.size())]);
  }
  std::string& body() override { return parser_->get().body(); }
  std::shared_ptr<const void> share_body(std::vector<std::string> beside) override;
  std::shared_ptr<HttpDecoded> take_decoded() override { return std::move(decoded_); }
  std::string peer() const override;
  TimePoint arrival() const override { return arrival_; }
  void respond(HttpResponse response) override;
  void keep(std::unique_ptr<HttpPending> pending) override;
  std::optional<HttpResponse> expect_answer(uint64_t bytes) override;
  void run_aside(std::function<void()> work, std::function<void()> then) override;

 private:
  enum class Phase { kShakingHands, kReading, kHandling, kWriting, kLingering };
  class Parser : public http::request_parser<http::string_body> {
   public:
    ~Parser() { give_back(std::as_writable_bytes(std::span(get().body()))); }
  };

  void on_handshake(error_code error) { error ? close() : read_header(); }
  void read_header();
  void on_header(error_code error);
  void read_body();
  void read_known_body();
  size_t wanted_bytes() const;
  net::mutable_buffer room_in_body();
  void read_chunked_body();
  void on_body();
  Status decode(bool is_compressed);
  void on_decoded(const Status& status);
  bool hold_body(uint64_t bytes);
  bool hold_answer(uint64_t bytes);
  HttpResponse no_room_for_answer() const;
  void release_answer();
  bool takes_too_long(TimePoint now);
  void refuse_body();
  void give_up_reading();
  void fail(error_code error);
  void watch();
  void on_readable();
  void on_half_closed();
  void write();
  void on_written(error_code error);
  void linger();
  // Every completion handler of this session.
  auto then(void (Session::*step)(error_code)) {
    return [self = shared_from_this(), step](error_code error, size_t = 0) { (self.get()->*step)(error); };
  }
  void enter(Phase phase) {
    phase_ = phase;
    phase_began_ = server_.now();
  }

  State& server_;
  HttpStream stream_;
  boost::beast::flat_buffer buffer_;
  std::shared_ptr<Parser> parser_;
  Phase phase_ = Phase::kShakingHands;
  bool closed_ = false;
  bool gave_up_reading_ = false;
  bool watching_ = false;  // a wait for the socket to become readable, or to fail, is under way
  bool half_closed_ = false;
  bool close_after_ = false;
  uint64_t body_bytes_max_ = 0;  // of this request
  std::string body_source_;      // of the body that is held; empty while that is short
  uint64_t body_bytes_held_ = 0;
  uint64_t answer_bytes_held_ = 0;
  std::string source_;          // of the answer that is held
  uint64_t written_bytes_ = 0;  // of the answer, to the kernel
  uint64_t taken_bytes_ = 0;    // by the client, when that was checked
  TimePoint taken_at_;          // when that was checked
  std::shared_ptr<HttpDecoded> decoded_;
  uint64_t lingered_bytes_ = 0;
  TimePoint arrival_;
  TimePoint phase_began_;
  std::optional<TimePoint> request_began_;  // when a part of it was first seen
  std::unique_ptr<HttpPending> pending_;
  HttpResponse response_;
  std::string head_;
  std::vector<net::const_buffer> pieces_;
};

void HttpServer::Session::start() {
  error_code ignored;
  stream_.socket().set_option(tcp::no_delay(true), ignored);
  stream_.socket().non_blocking(true, ignored);
  enter(Phase::kShakingHands);
  if (!stream_.is_tls()) return read_header();
  stream_.async_handshake(then(&Session::on_handshake));
}

std::optional<TimePoint> HttpServer::Session::idle_since() const {
  const bool idle = phase_ == Phase::kReading && !parser_->got_some() && buffer_.size() == 0;
  return idle ? std::optional(phase_began_) : std::nullopt;
}

void HttpServer::Session::check_time(TimePoint now) {
  const Duration spent = now - phase_began_;
  switch (phase_) {
    case Phase::kHandling: return;  // the client waits for this side
    case Phase::kLingering: return spent > kFrontendTimeouts.linger ? close() : void();
    case Phase::kShakingHands: return spent > server_.options.request_timeout ? close() : void();
    case Phase::kWriting: return takes_too_long(now) ? close() : void();
    case Phase::kReading: break;
  }
  if (idle_since()) return spent > server_.options.idle_timeout ? close() : void();
  if (!request_began_) request_began_ = now;
  if (now - *request_began_ > server_.options.request_timeout) give_up_reading();
}

// Whether the client took too little of its answer within the idle timeout. What the kernel still has is not taken.
bool HttpServer::Session::takes_too_long(TimePoint now) {
  const Duration period = server_.options.idle_timeout;
  if (now - taken_at_ <= period) return false;
  int waiting = 0;
  if (::ioctl(stream_.socket().native_handle(), SIOCOUTQ, &waiting) != 0) waiting = 0;
  const uint64_t taken = written_bytes_ - std::min<uint64_t>(written_bytes_, static_cast<uint64_t>(waiting));
  const double least = period.to_seconds() * static_cast<double>(kFrontendTimeouts.answer_bytes_per_second);
  const bool is_slow = static_cast<double>(taken) < static_cast<double>(taken_bytes_) + least;
  taken_bytes_ = taken;
  taken_at_ = now;
  return is_slow;
}

void HttpServer::Session::read_header() {
  enter(Phase::kReading);
  if (parser_ != nullptr) buffer_.reserve(kRequestBytes);
  request_began_.reset();
  hold_body(0);
  decoded_.reset();
  parser_ = server_.releases.share(std::make_unique<Parser>(),
                                   [](const Parser& parser) { return parser.get().body().capacity(); });
  parser_->header_limit(server_.options.header_bytes_max);
  body_bytes_max_ = server_.options.body_bytes_max;
  parser_->body_limit(body_bytes_max_);
  http::async_read_header(stream_, buffer_, *parser_, then(&Session::on_header));
}

void HttpServer::Session::on_header(error_code error) {
  if (error) return fail(error);
  arrival_ = server_.now() - stream_.age();
  if (!request_began_) request_began_ = arrival_;
  if (auto response = server_.handler.on_header(*this)) {
    phase_ = Phase::kHandling;
    close_after_ = close_after_ || !parser_->is_done() || !parser_->get().keep_alive();
    return respond(*std::move(response));
  }
  body_bytes_max_ = std::min(body_bytes_max_, server_.handler.body_bytes_max(*this));
  parser_->body_limit(body_bytes_max_);
  if (!parser_->is_done() && parser_->content_length().value_or(0) > body_bytes_max_) {
    return fail(http::error::body_limit);
  }
  if (boost::beast::iequals(parser_->get()[http::field::expect], "100-continue") && !parser_->is_done()) {
    net::async_write(stream_, net::buffer(kContinue), [self = shared_from_this()](error_code failed, size_t) {
      failed ? self->fail(failed) : self->read_body();
    });
    return;
  }
  read_body();
}

void HttpServer::Session::read_body() {
  if (parser_->is_done()) return on_body();
  if (!parser_->chunked() && parser_->content_length()) {
    body().reserve(std::min<uint64_t>(*parser_->content_length(), kMovedBytes) + kBodyPadding);
    return read_known_body();
  }
  read_chunked_body();
}

// A body of known length goes from the socket to where it stays. It grows as it
// comes, so that memory is not given for what is only announced.
void HttpServer::Session::read_known_body() {
  const size_t filled = body().size();
  const size_t length = *parser_->content_length();
  if (filled == length) return on_body();
  if (filled >= kMovedBytes) body().reserve(length + kBodyPadding);
  if (!hold_body(filled + wanted_bytes())) return refuse_body();
  if (buffer_.size() > 0) {
    const size_t taken = std::min(buffer_.size(), length - filled);
    body().append(static_cast<const char*>(buffer_.data().data()), taken);
    buffer_.consume(taken);
    return read_known_body();
  }
  if (filled >= kReadBytesMin && !stream_.is_tls()) {
    stream_.socket().async_wait(tcp::socket::wait_read, [self = shared_from_this()](error_code error) {
      error ? self->fail(error) : self->server_.add_long_read(self);
    });
    return;
  }
  stream_.async_read_some(room_in_body(), [self = shared_from_this(), filled](error_code error, size_t bytes) {
    if (error) return self->fail(error);
    self->body().resize(filled + bytes);
    self->read_known_body();
  });
}

size_t HttpServer::Session::wanted_bytes() const {
  const size_t filled = parser_->get().body().size();
  return std::min<size_t>(*parser_->content_length() - filled, std::clamp(filled, kReadBytesMin, kReadBytesMax));
}

// Behind what has come of the body, which is resized to what was read into it.
net::mutable_buffer HttpServer::Session::room_in_body() {
  const size_t filled = body().size(), wanted = wanted_bytes();
  body().resize(filled + wanted);
  return net::buffer(body().data() + filled, wanted);
}

// What has come is read, without waiting for more.
void HttpServer::Session::read_in_turn() {
  error_code error;
  if (closed_ || gave_up_reading_) return fail(net::error::operation_aborted);
  const size_t filled = body().size();
  const size_t bytes = stream_.socket().read_some(room_in_body(), error);
  body().resize(filled + bytes);
  if (error && error != net::error::would_block) return fail(error);
  read_known_body();
}

// One at a time: between two the thread takes what others have sent.
void HttpServer::State::add_long_read(std::shared_ptr<Session> session) {
  long_reads.push_back(std::move(session));
  if (long_reads.size() == 1) net::post(context, [this] { serve_long_read(); });
}

void HttpServer::State::serve_long_read() {
  const std::shared_ptr<Session> session = std::move(long_reads.front());
  long_reads.pop_front();
  if (!long_reads.empty()) net::post(context, [this] { serve_long_read(); });
  session->read_in_turn();
}

void HttpServer::Session::read_chunked_body() {
  if (parser_->is_done()) return on_body();
  // Room for the longest body once, as for one of known length: to double it again and again would move many MiB on the
  // thread that answers. Memory is given to what has come alone, and that is what counts then.
  const bool is_long = body().size() >= kMovedBytes;
  if (is_long) body().reserve(body_bytes_max_ + kBodyPadding);
  if (!hold_body(is_long ? body().size() : body().capacity())) return refuse_body();
  http::async_read_some(stream_, buffer_, *parser_, [self = shared_from_this()](error_code error, size_t) {
    if (error) return self->fail(error);
    self->read_chunked_body();
  });
}

void HttpServer::Session::on_body() {
  phase_ = Phase::kHandling;
  close_after_ = !parser_->get().keep_alive();
  const std::string_view encoding = header("Content-Encoding");
  const bool is_compressed = !encoding.empty() && encoding != "identity";
  if (is_compressed && encoding != "gzip" && encoding != "deflate")
    return respond(error_response(
        415, fmt::format("Content-Encoding '{}' is not supported; send gzip, deflate or none", encoding)));
  if (is_compressed || server_.handler.parsed_bytes(*this) > kParsedHereBytesMax) {
    const auto status = std::make_shared<Status>();
    return run_aside([this, status, is_compressed] { *status = decode(is_compressed); },
                     [this, status] { on_decoded(*status); });
  }
  server_.handler.handle(*this);
}

void HttpServer::Session::run_aside(std::function<void()> work, std::function<void()> then) {
  server_.decoder.add(server_.handler.source(*this),
                      [self = shared_from_this(), work = std::move(work), then = std::move(then)]() mutable {
                        work();
                        net::io_context& context = self->server_.context;
                        net::post(context, [self = std::move(self), then = std::move(then)] { then(); });
                      });
}

// Aside.
Status HttpServer::Session::decode(bool is_compressed) {
  if (is_compressed) {
    FOLIOT_ASSIGN_OR_RETURN(body(), inflate_bytes(body(), body_bytes_max_));
  }
  if (server_.handler.parsed_bytes(*this) > kParsedHereBytesMax) {
    // Its parser has some times as much memory as it has read.
    decoded_ = server_.releases.share(server_.handler.decode(*this),
                                      [bytes = body().size()](const HttpDecoded&) { return bytes; });
  }
  return Status();
}

void HttpServer::Session::on_decoded(const Status& status) {
  if (closed_) return;
  if (!status.ok()) {
    return respond(error_response(status.code() == StatusCode::kResourceExhausted ? 413 : 400, status.message()));
  }
  if (!hold_body(body().size() + (decoded_ ? decoded_->bytes() : 0))) return refuse_body();
  server_.handler.handle(*this);
}

std::shared_ptr<const void> HttpServer::Session::share_body(std::vector<std::string> beside) {
  struct Shared {
    Shared(std::shared_ptr<const void> given, std::vector<std::string> given_beside)
        : body(std::move(given)), beside(std::move(given_beside)) {}
    ~Shared() {
      for (std::string& each : beside) give_back(std::as_writable_bytes(std::span(each)));
    }
    std::shared_ptr<const void> body;
    std::vector<std::string> beside;
  };
  return server_.releases.share(std::make_unique<Shared>(parser_, std::move(beside)), [](const Shared& shared) {
    uint64_t bytes = 0;
    for (const std::string& each : shared.beside) bytes += each.capacity();
    return bytes;
  });
}

// Takes so much of the memory for bodies, instead of what it had. False: there is not so much, or not for its source.
bool HttpServer::Session::hold_body(uint64_t bytes) {
  if (bytes > kUnsharedBodyBytes && body_source_.empty()) {
    server_.bodies.resize(body_source_, std::exchange(body_bytes_held_, 0), 0);
    body_source_ = server_.handler.source(*this);
  }
  if (!server_.bodies.resize(body_source_, body_bytes_held_, bytes)) return false;
  body_bytes_held_ = bytes;
  if (bytes == 0) body_source_.clear();
  return true;
}

void HttpServer::Session::refuse_body() {
  close_after_ = true;
  phase_ = Phase::kHandling;
  HttpResponse response = error_response(503, server_.bodies.refusal(body_source_, body_bytes_held_));
  response.headers.emplace_back("Retry-After", "1");
  respond(std::move(response));
}

// Whatever is being read ends with an error, and is answered then.
void HttpServer::Session::give_up_reading() {
  gave_up_reading_ = true;
  error_code ignored;
  stream_.socket().cancel(ignored);
}

// The request could not be read: answer with the reason if the client is still there.
void HttpServer::Session::fail(error_code error) {
  const bool from_parser = error.category() == http::make_error_code(http::error::bad_target).category();
  if (!closed_ && gave_up_reading_) {
    close_after_ = true;
    phase_ = Phase::kHandling;
    return respond(error_response(408, fmt::format("the request did not come whole within {:.0f} s",
                                                   server_.options.request_timeout.to_seconds())));
  }
  // The client may have closed its own side alone, in the midst of a request.
  const bool is_cut = error == http::error::partial_message || (error == net::error::eof && parser_->got_some());
  if (closed_ || error == http::error::end_of_stream || !(from_parser || is_cut)) return close();
  close_after_ = true;
  phase_ = Phase::kHandling;
  if (error == http::error::body_limit)
    return respond(error_response(413, fmt::format("the body is larger than the {} bytes allowed", body_bytes_max_)));
  if (error == http::error::header_limit)
    return respond(error_response(
        431, fmt::format("the header is larger than the {} bytes allowed", server_.options.header_bytes_max)));
  if (is_cut) {
    return respond(error_response(
        400, fmt::format("the request ends before its end: {} bytes of its body have come", body().size())));
  }
  respond(error_response(400, fmt::format("not an HTTP request: {}", error.message())));
}

void HttpServer::Session::keep(std::unique_ptr<HttpPending> pending) {
  pending_ = std::move(pending);
  watch();
}

std::string HttpServer::Session::peer() const {
  error_code error;
  const tcp::endpoint peer = stream_.socket().remote_endpoint(error);
  return error ? "an address that is gone" : fmt::format("{}:{}", peer.address().to_string(), peer.port());
}

// While a response is awaited nothing is read, so that a closed connection shows as a
// socket that is readable and empty. (With TLS, the alert before its end hides that: a
// client that is gone is then noticed when the answer is written.) One that is half closed stays readable: only that
// it fails is awaited then.
void HttpServer::Session::watch() {
  if (watching_) return;
  watching_ = true;
  const auto event = half_closed_ ? tcp::socket::wait_error : tcp::socket::wait_read;
  stream_.socket().async_wait(event, [self = shared_from_this()](error_code error) {
    self->watching_ = false;
    if (!error) self->on_readable();
  });
}

void HttpServer::Session::on_readable() {
  if (phase_ != Phase::kHandling || pending_ == nullptr || closed_) return;
  char next;
  error_code error;
  stream_.socket().receive(net::buffer(&next, 1), tcp::socket::message_peek, error);
  // A pipelined request hides the end of the stream behind it; its answer's
  // failure to be written will show it then.
  if (!error || error == net::error::would_block) return;
  if (error == net::error::eof && !half_closed_ && !stream_.is_tls()) return on_half_closed();
  pending_->on_client_gone();
  close();
}

// A client that has closed its side may still await the answer, or have closed all. An interim response, which every
// client of HTTP/1.1 must accept, finds out: if the client has closed all, its bytes are answered by a reset.
void HttpServer::Session::on_half_closed() {
  half_closed_ = true;
  if (parser_->get().version() >= 11) {
    error_code ignored;
    stream_.socket().send(net::buffer(kContinue), 0, ignored);
  }
  watch();
}

void HttpServer::Session::respond(HttpResponse response) {
  FOLIOT_CHECK(phase_ == Phase::kHandling);
  enter(Phase::kWriting);
  response_ = std::move(response);
  decoded_.reset();
  if (closed_) {
    // The client is gone; the server kept the session for this response.
    pending_.reset();
    server_.sessions.erase(shared_from_this());
    return;
  }
  write();
}

std::optional<HttpResponse> HttpServer::Session::expect_answer(uint64_t bytes) {
  // One of more is refused, if at all, for what is wrong with it.
  if (hold_answer(std::min(bytes, server_.answers.source_bytes_max()))) return std::nullopt;
  return no_room_for_answer();
}

// Instead of what was held. False: there is no room for so much among what waits to be read.
bool HttpServer::Session::hold_answer(uint64_t bytes) {
  release_answer();
  if (bytes <= kSmallAnswerBytes) return true;
  source_ = server_.handler.source(*this);
  if (!server_.answers.hold(source_, bytes)) return false;
  answer_bytes_held_ = bytes;
  return true;
}

void HttpServer::Session::release_answer() { server_.answers.release(source_, std::exchange(answer_bytes_held_, 0)); }

HttpResponse HttpServer::Session::no_room_for_answer() const {
  HttpResponse response = error_response(503, server_.answers.refusal(source_));
  response.headers.emplace_back("Retry-After", "1");
  return response;
}

void HttpServer::Session::write() {
  uint64_t body_bytes = 0;
  for (const std::string& piece : response_.body) body_bytes += piece.size();
  if (!hold_answer(body_bytes)) response_ = no_room_for_answer();
  written_bytes_ = taken_bytes_ = 0;
  taken_at_ = phase_began_;
  head_ = head_of(response_, !close_after_, parser_->get().version());
  pieces_.clear();
  pieces_.push_back(net::buffer(head_));
  if (method() != "HEAD")
    for (const std::string& piece : response_.body) pieces_.push_back(net::buffer(piece));
  const auto count = [this](error_code error, size_t bytes) {
    written_bytes_ = bytes;
    return net::transfer_all()(error, bytes);
  };
  net::async_write(stream_, pieces_, count, then(&Session::on_written));
}

void HttpServer::Session::on_written(error_code error) {
  pending_.reset();
  response_ = {};
  release_answer();
  if (error || closed_) return close();
  if (!close_after_) return read_header();
  enter(Phase::kLingering);
  parser_.reset();
  hold_body(0);
  stream_.socket().shutdown(tcp::socket::shutdown_send, error);
  linger();
}

// Closing while the client still sends would reset the connection, and could take the
// response from it: read on, for at most FrontendTimeouts::linger, and discard. A client that has
// sent too much by then waits until the connection is closed.
void HttpServer::Session::linger() {
  if (lingered_bytes_ > kLingerBytesMax) return;
  buffer_.clear();
  stream_.socket().async_read_some(buffer_.prepare(kLingerReadBytes),
                                   [self = shared_from_this()](error_code error, size_t bytes) {
                                     self->lingered_bytes_ += bytes;
                                     error ? self->close() : self->linger();
                                   });
}

void HttpServer::Session::close() {
  if (!closed_) {
    closed_ = true;
    error_code ignored;
    stream_.socket().close(ignored);
  }
  const bool owed = phase_ == Phase::kHandling && pending_ != nullptr;
  if (!owed) server_.sessions.erase(shared_from_this());
}

Status HttpServer::State::prepare_tls() {
  if (!options.tls) return Status();
  FOLIOT_ASSIGN_OR_RETURN(tls, make_tls_context(*options.tls));
  return Status();
}

Status HttpServer::State::bind() {
  FOLIOT_RETURN_IF_ERROR(listen_at(acceptor, options.address, options.port, options.port_flag));
  StampedSocket::enable_stamps(acceptor);
  port = acceptor.local_endpoint().port();
  return Status::ok_status();
}

void HttpServer::State::accept() {
  accepting = true;
  acceptor.async_accept([this](error_code error, tcp::socket socket) {
    accepting = !error;
    if (error) return accept_later();
    if (!make_room()) {
      socket.non_blocking(true, error);
      socket.send(net::buffer(kTooManyConnections), 0, error);
    } else {
      const auto session = std::make_shared<Session>(*this, std::move(socket));
      sessions.insert(session);
      session->start();
    }
    accept();
  });
}

// Out of descriptors, most likely, which is a limit of connections like the other one. The next sweep tries again, too.
void HttpServer::State::accept_later() {
  if (!evict_idle()) {
    spare.refuse_waiting(acceptor.native_handle(), [](int connection) {
      ::send(connection, kTooManyConnections.data(), kTooManyConnections.size(), MSG_NOSIGNAL);
    });
  }
  accept_timer.expires_after(std::chrono::milliseconds(kPauseWithoutDescriptorsMilliseconds));
  accept_timer.async_wait([this](error_code error) {
    if (!error && !accepting) accept();
  });
}

bool HttpServer::State::make_room() { return sessions.size() < options.connections_max || evict_idle(); }

// The connection that has been idle longest.
bool HttpServer::State::evict_idle() {
  const TimePoint instant = now();
  if (evictions.due(instant)) find_evictable(instant);
  return evictions.evict([&](const std::weak_ptr<Session>& idle) {
    const std::shared_ptr<Session> session = idle.lock();
    if (session == nullptr || !sessions.contains(session)) return false;
    const std::optional<TimePoint> since = session->idle_since();
    if (!since || instant - *since <= kFrontendTimeouts.idle_before_eviction) return false;
    session->close();
    return true;
  });
}

void HttpServer::State::find_evictable(TimePoint instant) {
  std::vector<IdleEvictions<std::weak_ptr<Session>>::Idle> idle;
  for (const auto& session : sessions) {
    const std::optional<TimePoint> since = session->idle_since();
    if (since && instant - *since > kFrontendTimeouts.idle_before_eviction) idle.emplace_back(*since, session);
  }
  evictions.set_candidates(std::move(idle));
}

void HttpServer::State::sweep() {
  sweep_timer.expires_after(std::chrono::nanoseconds(kFrontendTimeouts.check_interval.nanoseconds()));
  sweep_timer.async_wait([this](error_code error) {
    if (error) return;
    const std::vector<std::shared_ptr<Session>> all(sessions.begin(), sessions.end());
    const TimePoint instant = now();
    for (const auto& session : all) session->check_time(instant);
    if (!accepting) accept();
    sweep();
  });
}

void HttpServer::State::run() {
  pthread_setname_np(pthread_self(), options.thread_name.c_str());
  wake_promptly();
  context.run();
}

HttpServer::HttpServer(HttpServerOptions options, HttpHandler& handler, std::function<TimePoint()> now)
    : state_(std::make_unique<State>(std::move(options), handler, std::move(now))) {}

HttpServer::~HttpServer() { stop(); }

Status HttpServer::start() {
  FOLIOT_RETURN_IF_ERROR(state_->prepare_tls());
  FOLIOT_RETURN_IF_ERROR(state_->bind());
  state_->accept();
  state_->sweep();
  state_->thread = std::thread([this] { state_->run(); });
  return Status::ok_status();
}

void HttpServer::stop() {
  if (!state_->thread.joinable()) return;
  state_->context.stop();
  state_->thread.join();
  state_->decoder.stop();
  state_->long_reads.clear();
  state_->sessions.clear();
}

uint16_t HttpServer::port() const { return state_->port; }

Status HttpServer::use_tls(const TlsIdentity& identity) {
  FOLIOT_CHECK(state_->options.tls.has_value());
  FOLIOT_ASSIGN_OR_RETURN(auto tls, make_tls_context(identity));
  // Connections that are there have a share in what they began with.
  net::post(state_->context,
            [this, shared = std::make_shared<decltype(tls)>(std::move(tls))] { state_->tls = std::move(*shared); });
  return Status();
}

void HttpServer::post(std::function<void()> task) { net::post(state_->context, std::move(task)); }

}  // namespace foliot
