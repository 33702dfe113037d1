#include "foundation/net/http_connection.h"

#include <curl/curl.h>
#include <fmt/format.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <span>
#include <string_view>
#include <utility>

namespace foliot {
namespace {

constexpr bool is_success(long code) { return code >= 200 && code < 300; }

// What comes of one call, and where it goes.
struct Incoming {
  const HttpCall& call;
  CURL* curl;
  HttpAnswer answer{};
  uint64_t sent = 0;  // of the call's file
};

size_t take_bytes(char* bytes, size_t /*one*/, size_t count, void* to) {
  auto& incoming = *static_cast<Incoming*>(to);
  curl_easy_getinfo(incoming.curl, CURLINFO_RESPONSE_CODE, &incoming.answer.code);
  if (incoming.call.on_bytes && is_success(incoming.answer.code)) {
    return incoming.call.on_bytes(incoming.answer, std::as_bytes(std::span(bytes, count))) ? count : 0;
  }
  if (incoming.answer.body.size() + count > incoming.call.answer_bytes_max) return 0;
  incoming.answer.body.append(bytes, count);
  return count;
}

size_t take_header(char* bytes, size_t /*one*/, size_t count, void* to) {
  constexpr size_t kHeadersMax = 256;
  auto& headers = static_cast<Incoming*>(to)->answer.headers;
  std::string_view line(bytes, count);
  if (line.starts_with("HTTP/")) headers.clear();  // those of an interim answer came before
  const size_t colon = line.find(':');
  if (colon == line.npos || headers.size() == kHeadersMax) return count;
  std::string name(line.substr(0, colon));
  std::ranges::transform(name, name.begin(),
                         [](char c) { return 'A' <= c && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  line.remove_prefix(colon + 1);
  const size_t begin = std::min(line.find_first_not_of(" \t"), line.size());
  const size_t end = line.find_last_not_of(" \t\r\n");
  headers.emplace_back(std::move(name), end == line.npos ? "" : line.substr(begin, end + 1 - begin));
  return count;
}

size_t give_file(char* bytes, size_t one, size_t count, void* of) {
  auto& incoming = *static_cast<Incoming*>(of);
  const ssize_t read = ::pread(incoming.call.file, bytes, one * count, static_cast<off_t>(incoming.sent));
  if (read < 0) return CURL_READFUNC_ABORT;
  incoming.sent += static_cast<uint64_t>(read);
  return static_cast<size_t>(read);
}

int seek_file(void* of, curl_off_t offset, int origin) {
  if (origin != SEEK_SET) return CURL_SEEKFUNC_CANTSEEK;
  static_cast<Incoming*>(of)->sent = static_cast<uint64_t>(offset);
  return CURL_SEEKFUNC_OK;
}

int ask_cancelled(void* of, curl_off_t /*down_all*/, curl_off_t /*down*/, curl_off_t /*up_all*/, curl_off_t /*up*/) {
  return static_cast<Incoming*>(of)->call.cancelled() ? 1 : 0;
}

class HeaderList {
 public:
  explicit HeaderList(const std::vector<std::string>& lines) {
    for (const std::string& line : lines) list_ = curl_slist_append(list_, line.c_str());
  }
  ~HeaderList() { curl_slist_free_all(list_); }
  HeaderList(const HeaderList&) = delete;
  HeaderList& operator=(const HeaderList&) = delete;
  const curl_slist* get() const { return list_; }

 private:
  curl_slist* list_ = nullptr;
};

// A TLS connection that the peer has closed raises SIGPIPE where it is written to, which would end the process.
class WithoutPipeSignal {
 public:
  WithoutPipeSignal() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~WithoutPipeSignal() {
    const timespec at_once{};
    while (sigismember(&before_, SIGPIPE) == 0 && ::sigtimedwait(&pipe_, nullptr, &at_once) < 0 && errno == EINTR) {
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  WithoutPipeSignal(const WithoutPipeSignal&) = delete;
  WithoutPipeSignal& operator=(const WithoutPipeSignal&) = delete;

 private:
  sigset_t pipe_;
  sigset_t before_;
};

long milliseconds(Duration duration) { return static_cast<long>(duration.nanoseconds() / 1'000'000); }

void set_destination(CURL* curl, const HttpCall& call, const HeaderList& headers) {
  curl_easy_setopt(curl, CURLOPT_URL, call.url.c_str());
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
  curl_easy_setopt(curl, CURLOPT_PATH_AS_IS, 1L);
  curl_easy_setopt(curl, CURLOPT_PROXY, "");
  curl_easy_setopt(curl, CURLOPT_NETRC, static_cast<long>(CURL_NETRC_IGNORED));
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers.get());
  if (!call.ca_file.empty()) curl_easy_setopt(curl, CURLOPT_CAINFO, call.ca_file.c_str());
  if (call.any_certificate) {
    curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, 0L);
    curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, 0L);
  }
  if (call.aws_scope.empty()) return;
  curl_easy_setopt(curl, CURLOPT_AWS_SIGV4, call.aws_scope.c_str());
  curl_easy_setopt(curl, CURLOPT_USERNAME, call.aws_key_id.c_str());
  curl_easy_setopt(curl, CURLOPT_PASSWORD, call.aws_secret.c_str());
}

void set_limits(CURL* curl, Incoming& incoming) {
  const HttpCall& call = incoming.call;
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, milliseconds(call.timeout));
  if (call.stall_timeout > Duration()) {
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, milliseconds(call.stall_timeout));
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, std::max(milliseconds(call.stall_timeout) / 1000, 1L));
  }
  if (!call.cancelled) return;
  curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, ask_cancelled);
  curl_easy_setopt(curl, CURLOPT_XFERINFODATA, &incoming);
}

void set_bodies(CURL* curl, Incoming& incoming) {
  const HttpCall& call = incoming.call;
  curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, call.method.c_str());
  if (call.method == "HEAD") curl_easy_setopt(curl, CURLOPT_NOBODY, 1L);
  if (call.file >= 0) {
    curl_easy_setopt(curl, CURLOPT_UPLOAD, 1L);
    curl_easy_setopt(curl, CURLOPT_READFUNCTION, give_file);
    curl_easy_setopt(curl, CURLOPT_READDATA, &incoming);
    curl_easy_setopt(curl, CURLOPT_SEEKFUNCTION, seek_file);
    curl_easy_setopt(curl, CURLOPT_SEEKDATA, &incoming);
    curl_easy_setopt(curl, CURLOPT_INFILESIZE_LARGE, static_cast<curl_off_t>(call.file_bytes));
  } else if (call.method != "GET" && call.method != "HEAD") {
    curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE, static_cast<long>(call.body.size()));
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, call.body.c_str());
  }
  // Of streams; the default of 16 KiB costs a third of the speed on a fast network.
  if (call.on_bytes) curl_easy_setopt(curl, CURLOPT_BUFFERSIZE, 512L << 10);
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_bytes);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &incoming);
  curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, take_header);
  curl_easy_setopt(curl, CURLOPT_HEADERDATA, &incoming);
}

}  // namespace

HttpConnection::HttpConnection() : curl_(curl_easy_init()) {}
HttpConnection::~HttpConnection() {
  const WithoutPipeSignal without_pipe_signal;
  curl_easy_cleanup(curl_);
}

Result<HttpAnswer> HttpConnection::call(const HttpCall& call) {
  if (curl_ == nullptr) return Status::unavailable("libcurl cannot begin");
  const HeaderList headers(call.headers);
  const WithoutPipeSignal without_pipe_signal;
  Incoming incoming{.call = call, .curl = curl_};
  curl_easy_reset(curl_);  // keeps the connection
  set_destination(curl_, call, headers);
  set_limits(curl_, incoming);
  set_bodies(curl_, incoming);
  if (const CURLcode error = curl_easy_perform(curl_); error != CURLE_OK) {
    return Status::unavailable(fmt::format("{}: {}", call.url, curl_easy_strerror(error)));
  }
  curl_easy_getinfo(curl_, CURLINFO_RESPONSE_CODE, &incoming.answer.code);
  return std::move(incoming.answer);
}

}  // namespace foliot
