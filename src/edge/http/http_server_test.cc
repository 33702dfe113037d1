// The server with handlers of its own, on a loopback port.
#include "edge/http/http_server.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <future>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "edge/frontend/test_server.h"
#include "edge/http/test_client.h"

namespace foliot {
namespace {

using ::testing::HasSubstr;

HttpServerOptions bodies_up_to(uint64_t bytes) {
  return {.thread_name = "test",
          .address = "127.0.0.1",
          .body_bytes_max = bytes,
          .bodies_bytes_max = 16 * bytes,
          .header_bytes_max = 4096,
          .connections_max = 8,
          .idle_timeout = Duration::seconds(60),
          .request_timeout = Duration::seconds(60)};
}

// Of 8 MiB the first source holds 3 in a request that is not answered yet.
TEST(HttpServerTest, ASourceHasNoMoreOfTheMemoryForBodiesThanItLeavesToOthers) {
  class Holder final : public HttpHandler {
   public:
    void handle(HttpExchange& exchange) override {
      if (exchange.header("Hold").empty()) return exchange.respond({.body = {"answered"}});
      held = &exchange;
      has_come.set_value();
    }
    std::string source(const HttpExchange& exchange) const override { return std::string(exchange.header("Source")); }
    HttpExchange* held = nullptr;
    std::promise<void> has_come;
  } handler;
  HttpServer server({.thread_name = "test",
                     .address = "127.0.0.1",
                     .body_bytes_max = 8 << 20,
                     .bodies_bytes_max = 8 << 20,
                     .header_bytes_max = 4096,
                     .connections_max = 8,
                     .idle_timeout = Duration::seconds(60),
                     .request_timeout = Duration::seconds(60)},
                    handler, steady_now);
  ASSERT_TRUE(server.start().ok());
  const auto request = [](const std::string& headers, size_t mebibytes) {
    const std::string body(mebibytes << 20, ' ');
    return fmt::format("POST / HTTP/1.1\r\nHost: x\r\n{}\r\nContent-Length: {}\r\n\r\n{}", headers, body.size(), body);
  };
  Client first(server.port());
  first.send(request("Source: a\r\nHold: yes", 3));
  handler.has_come.get_future().wait();
  Client more(server.port());
  more.send(request("Source: a", 3));
  const Reply refused = more.read();
  EXPECT_EQ(refused.status, 503u);
  EXPECT_EQ(refused.header("Retry-After"), "1");
  EXPECT_THAT(refused.body, HasSubstr("bodies of 'a' under way take"));
  Client other(server.port());
  other.send(request("Source: b", 4));
  EXPECT_EQ(other.read().status, 200u);
  server.post([&] { handler.held->respond({.body = {"answered"}}); });
  EXPECT_EQ(first.read().status, 200u);
  Client again(server.port());
  again.send(request("Source: a", 7));
  EXPECT_EQ(again.read().status, 200u) << "one body has room however long it is";
  server.stop();
}

// What has come of a long body is moved once, when it is 1 MiB, into room for the longest: its bytes then stay where
// they are. Only what has come counts, so that two such bodies fit at once.
TEST(HttpServerTest, ALongChunkedBodyDoesNotMove) {
  class Recorder final : public HttpHandler {
   public:
    void handle(HttpExchange& exchange) override {
      capacity = exchange.body().capacity();
      exchange.respond({.body = {std::to_string(exchange.body().size())}});
    }
    size_t capacity = 0;  // read after the answer
  } handler;
  constexpr size_t kPiece = 1 << 20;
  HttpServer server({.thread_name = "test",
                     .address = "127.0.0.1",
                     .body_bytes_max = 16 * kPiece,
                     .bodies_bytes_max = 24 * kPiece,
                     .header_bytes_max = 4096,
                     .connections_max = 4,
                     .idle_timeout = Duration::seconds(60),
                     .request_timeout = Duration::seconds(60)},
                    handler, steady_now);
  ASSERT_TRUE(server.start().ok());
  const std::string piece = fmt::format("{:x}\r\n{}\r\n", kPiece, std::string(kPiece, ' '));
  Client first(server.port());
  Client second(server.port());
  for (Client* client : {&first, &second}) {
    client->send("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
    for (int i = 0; i < 5; ++i) client->send(piece);
  }
  for (Client* client : {&first, &second}) {
    client->send("0\r\n\r\n");
    EXPECT_EQ(client->read().body, std::to_string(5 * kPiece));
    EXPECT_GE(handler.capacity, 16 * kPiece);
  }
  server.stop();
}

// Whatever else comes in between: each part of a body that is read in turns lands where it belongs, and what follows
// it belongs to the next request.
TEST(HttpServerTest, LongBodiesThatComeTogetherComeWhole) {
  class Hasher final : public HttpHandler {
   public:
    void handle(HttpExchange& exchange) override {
      exchange.respond({.body = {std::to_string(std::hash<std::string>()(exchange.body()))}});
    }
  } handler;
  HttpServer server(bodies_up_to(8 << 20), handler, steady_now);
  ASSERT_TRUE(server.start().ok());
  std::vector<std::thread> clients;
  for (int i = 0; i < 6; ++i) {
    clients.emplace_back([i, port = server.port()] {
      std::mt19937_64 random(i);
      Client client(port);
      for (const size_t bytes : {size_t{10}, (size_t{3} << 20) + i, size_t{17} << 10, size_t{2} << 20}) {
        std::string body(bytes, ' ');
        for (char& each : body) each = static_cast<char>(random());
        const std::string request = Client::request("POST", "/", body, "");
        client.send(request + request);
        for (int answer = 0; answer < 2; ++answer) {
          EXPECT_EQ(client.read().body, std::to_string(std::hash<std::string>()(body))) << bytes << " bytes";
        }
      }
    });
  }
  for (std::thread& client : clients) client.join();
  server.stop();
}

// The answer of one client is being written aside, until the test says so; meanwhile others are answered, and it goes.
TEST(HttpServerTest, AClientMayGoWhileItsAnswerIsWrittenAside) {
  struct Pending final : public HttpPending {
    explicit Pending(std::promise<void>& when_gone) : gone(when_gone) {}
    void on_client_gone() override { gone.set_value(); }
    std::promise<void>& gone;
  };
  class Slow final : public HttpHandler {
   public:
    void handle(HttpExchange& exchange) override {
      if (exchange.target() != "/slow") return exchange.respond({.body = {"answered"}});
      exchange.keep(std::make_unique<Pending>(gone));
      exchange.run_aside(
          [this] {
            begun.set_value();
            go.get_future().wait();
          },
          [this, &exchange] {
            exchange.respond({.body = {"too late"}});
            done.set_value();
          });
    }
    std::promise<void> gone, begun, go, done;
  } handler;
  HttpServer server(bodies_up_to(1 << 20), handler, steady_now);
  ASSERT_TRUE(server.start().ok());
  Client slow(server.port()), other(server.port());
  slow.send(Client::request("GET", "/slow", "", ""));
  handler.begun.get_future().wait();
  EXPECT_EQ(other.ask("GET", "/").body, "answered");
  slow.abort();
  handler.gone.get_future().wait();
  handler.go.set_value();
  handler.done.get_future().wait();
  EXPECT_EQ(other.ask("GET", "/").body, "answered");
  server.stop();
}

}  // namespace
}  // namespace foliot
