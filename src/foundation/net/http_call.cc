#include "foundation/net/http_call.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <memory>

namespace foliot {
namespace {

struct AnswerSpace {
  std::string bytes;
  size_t bytes_max = 0;
};

size_t append_answer(char* bytes, size_t /*one*/, size_t count, void* to) {
  auto& space = *static_cast<AnswerSpace*>(to);
  if (space.bytes.size() + count > space.bytes_max) return 0;
  space.bytes.append(bytes, count);
  return count;
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

using ParsedUrl = std::unique_ptr<CURLU, decltype(&curl_url_cleanup)>;

// Empty: it has no such part.
std::string part_of(CURLU* url, CURLUPart part, unsigned flags) {
  char* text = nullptr;
  if (curl_url_get(url, part, &text, flags) != CURLUE_OK) return "";
  std::string copy(text);
  curl_free(text);
  return copy;
}

}  // namespace

Result<UrlParts> parse_url(const std::string& url) {
  const auto wrong = [&](std::string_view why) { return Status::invalid_argument(fmt::format("'{}' {}", url, why)); };
  const ParsedUrl parsed(curl_url(), curl_url_cleanup);
  if (parsed == nullptr) return Status::unavailable("libcurl cannot begin");
  if (const CURLUcode code = curl_url_set(parsed.get(), CURLUPART_URL, url.c_str(), 0); code != CURLUE_OK) {
    return wrong(fmt::format("is no URL: {}", curl_url_strerror(code)));
  }
  UrlParts parts{.scheme = part_of(parsed.get(), CURLUPART_SCHEME, 0),
                 .host = part_of(parsed.get(), CURLUPART_HOST, 0)};
  if (parts.scheme != "http" && parts.scheme != "https") return wrong("must begin with http:// or https://");
  if (!part_of(parsed.get(), CURLUPART_USER, 0).empty() || !part_of(parsed.get(), CURLUPART_PASSWORD, 0).empty()) {
    return wrong("has a user or a password, which is not allowed");
  }
  std::ranges::transform(parts.host, parts.host.begin(),
                         [](char c) { return 'A' <= c && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  const std::string port = part_of(parsed.get(), CURLUPART_PORT, CURLU_DEFAULT_PORT);
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), parts.port);
  if (error != std::errc() || end != port.data() + port.size()) return wrong("has no port");
  return parts;
}

Result<HttpAnswer> http_call(const HttpCall& call) {
  const std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> curl(curl_easy_init(), curl_easy_cleanup);
  if (curl == nullptr) return Status::unavailable("libcurl cannot begin");
  const HeaderList headers(call.headers);
  const WithoutPipeSignal without_pipe_signal;
  AnswerSpace space{.bytes = {}, .bytes_max = call.answer_bytes_max};
  curl_easy_setopt(curl.get(), CURLOPT_URL, call.url.c_str());
  curl_easy_setopt(curl.get(), CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl.get(), CURLOPT_FOLLOWLOCATION, 0L);
  curl_easy_setopt(curl.get(), CURLOPT_PROXY, "");
  curl_easy_setopt(curl.get(), CURLOPT_NETRC, static_cast<long>(CURL_NETRC_IGNORED));
  curl_easy_setopt(curl.get(), CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl.get(), CURLOPT_TIMEOUT_MS, static_cast<long>(call.timeout.nanoseconds() / 1'000'000));
  if (!call.ca_file.empty()) curl_easy_setopt(curl.get(), CURLOPT_CAINFO, call.ca_file.c_str());
  if (call.any_certificate) {
    curl_easy_setopt(curl.get(), CURLOPT_SSL_VERIFYPEER, 0L);
    curl_easy_setopt(curl.get(), CURLOPT_SSL_VERIFYHOST, 0L);
  }
  curl_easy_setopt(curl.get(), CURLOPT_CUSTOMREQUEST, call.method.c_str());
  if (call.method != "GET") {
    curl_easy_setopt(curl.get(), CURLOPT_POSTFIELDSIZE, static_cast<long>(call.body.size()));
    curl_easy_setopt(curl.get(), CURLOPT_POSTFIELDS, call.body.c_str());
  }
  curl_easy_setopt(curl.get(), CURLOPT_HTTPHEADER, headers.get());
  curl_easy_setopt(curl.get(), CURLOPT_WRITEFUNCTION, append_answer);
  curl_easy_setopt(curl.get(), CURLOPT_WRITEDATA, &space);
  if (const CURLcode error = curl_easy_perform(curl.get()); error != CURLE_OK) {
    return Status::unavailable(fmt::format("{}: {}", call.url, curl_easy_strerror(error)));
  }
  HttpAnswer answer{.body = std::move(space.bytes)};
  curl_easy_getinfo(curl.get(), CURLINFO_RESPONSE_CODE, &answer.code);
  return answer;
}

}  // namespace foliot
