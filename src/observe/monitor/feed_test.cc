#include "observe/monitor/feed.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>
#include <string>

#include "foundation/base/test_seed.h"
#include "foundation/base/test_time.h"
#include "observe/monitor/page_file.h"
#include "observe/request_log/explanation.h"
#include "observe/request_log/log.h"
#include "observe/request_log/log_writer.h"

namespace foliot {
namespace {

constexpr size_t kEvents = 64;

class FeedTest : public testing::Test {
 protected:
  void model(const std::string& name, ModelId id = ModelId(0)) {
    ModelInfo info;
    info.id = id;
    info.name = name;
    monitor_.on_model(info);
  }
  // A request that comes and is refused: one event.
  void refuse(uint64_t id, ModelId of = ModelId(0)) {
    monitor_.on_request({.id = RequestId(id), .model = of}, now_);
    monitor_.on_completion(
        {.id = RequestId(id), .model = of, .refusal = Refusal::kExpired, .arrival = now_, .finished = now_}, now_);
  }
  nlohmann::json ask(const std::string& since = "") { return nlohmann::json::parse(feed_.answer(since)); }

  TimePoint now_ = at(1000);
  Monitor monitor_{kEvents};
  MonitorFeed feed_{monitor_, "c0ffee", at(1000), [this] { return now_; }};
};

TEST_F(FeedTest, ExplainsByNumberAndByTheIdOfTheClient) {
  EXPECT_EQ(feed_.explanation(RequestId(1), "").status().code(), StatusCode::kNotFound) << "there is no log";
  const auto folder = std::filesystem::path(testing::TempDir()) / ("foliot_feed_" + std::to_string(getpid()));
  {
    auto writer = LogWriter::open({.folder = folder});
    ASSERT_TRUE(writer.ok());
    for (const uint64_t id : {1, 2}) {
      RequestRecord record{.id = RequestId(id), .model = "m", .arrival = at(1), .departure = at(2)};
      record.label = std::make_shared<const CallLabel>(call_label("order 17"));
      (*writer)->add(record);
    }
  }
  feed_.use_log(folder);
  const auto text = feed_.explanation(RequestId(1), "");
  ASSERT_TRUE(text.ok()) << text.status().message();
  EXPECT_TRUE(text->starts_with("Request 1 of model 'm'"));
  EXPECT_EQ(*text, explain(*Log::read(folder), *Log::read(folder)->request(RequestId(1))));
  EXPECT_TRUE(feed_.explanation(std::nullopt, "order 17").ok());
  EXPECT_EQ(feed_.explanation(std::nullopt, "").status().code(), StatusCode::kNotFound);
  EXPECT_EQ(feed_.explanation(RequestId(3), "").status().code(), StatusCode::kNotFound);
  std::filesystem::remove_all(folder);
}

TEST_F(FeedTest, GivesWhatCameSinceTheLastAnswer) {
  model("m");
  refuse(1);
  const nlohmann::json first = ask();
  EXPECT_EQ(first["version"], 1);
  EXPECT_EQ(first["process"], "c0ffee");
  EXPECT_EQ(first["full"], true);
  EXPECT_EQ(first["requests"].size(), 1u);
  EXPECT_EQ(first["outcomes"], nlohmann::json({{"expired", 1}}));
  now_ = at(1001);
  refuse(2);
  const nlohmann::json second = ask(first["next"]);
  EXPECT_EQ(second["full"], false);
  EXPECT_EQ(second["lost"], 0);
  EXPECT_EQ(second["now"], 1'000'000);
  ASSERT_EQ(second["requests"].size(), 1u);
  EXPECT_EQ(second["requests"][0]["id"], "2");
  EXPECT_EQ(second["requests"][0]["arrival"], 1'000'000);
  EXPECT_EQ(second["requests"][0]["outcome"], "expired");
  EXPECT_EQ(ask(second["next"])["requests"].size(), 0u);
}

TEST_F(FeedTest, WhatIsNoAnswerOfThisProcessGetsAFullOne) {
  model("m");
  for (uint64_t id = 1; id <= 3; ++id) refuse(id);
  for (const std::string since : {"", "0", "1", "c0ffee", "c0ffee.", "c0ffee.4", "c0ffee.-1", "c0ffee.1x",
                                  "c0ffee.99999999999999999999", "decaf.1", "c0ffee.0x1", "<script>", "c0ffee. 1"}) {
    const nlohmann::json answer = ask(since);
    EXPECT_EQ(answer["full"], true) << since;
    EXPECT_EQ(answer["requests"].size(), 3u) << since;
    EXPECT_EQ(answer["lost"], 0) << since;
  }
  EXPECT_EQ(ask("c0ffee.3")["full"], false);
  EXPECT_EQ(ask("c0ffee.0")["full"], false);
  for (uint64_t id = 0; id < kEvents; ++id) refuse(id);
  EXPECT_EQ(ask("c0ffee.2")["full"], true);  // gone
  EXPECT_EQ(ask("c0ffee.3")["full"], false);
}

TEST_F(FeedTest, ReadsTheStateFourTimesASecondAtMost) {
  model("m");
  refuse(1);
  EXPECT_EQ(ask()["models"][0]["arrivals"], 1);
  refuse(2);
  now_ = at(1249);
  EXPECT_EQ(ask()["models"][0]["arrivals"], 1);
  now_ = at(1250);
  EXPECT_EQ(ask()["models"][0]["arrivals"], 2);
}

TEST_F(FeedTest, NamesAreText) {
  const std::string name = "</script>\"\\\x01\xff\u202e";
  model(name);
  refuse(1);
  EXPECT_EQ(ask()["models"][0]["name"], "</script>\"\\\x01\ufffd\u202e");
  EXPECT_EQ(ask()["requests"][0]["model"], "</script>\"\\\x01\ufffd\u202e");
}

TEST_F(FeedTest, ModelsThatWereAskedForMostAreNotLeftOut) {
  constexpr uint32_t kModels = 3000;
  for (uint32_t id = 0; id < kModels; ++id) {
    model(std::string(200, 'x') + std::to_string(id), ModelId(id));
    refuse(id, ModelId(id));
  }
  refuse(1, ModelId(kModels - 1));
  const std::string text = feed_.answer("");
  EXPECT_LE(text.size(), MonitorFeed::kBytesMax);
  const nlohmann::json answer = nlohmann::json::parse(text);
  EXPECT_EQ(answer["models"][0]["arrivals"], 2);
  EXPECT_EQ(answer["models"].size() + answer["models_left_out"].get<size_t>(), kModels);
  EXPECT_GT(answer["models_left_out"], 0);
}

// Many long events: the newest fit, the others are lost.
TEST(Feed, KeepsToItsSize) {
  Monitor monitor(1 << 14);
  ModelInfo info;
  info.name = std::string(200, '\x01');  // six bytes each in JSON
  monitor.on_model(info);
  MonitorFeed feed(monitor, "c0ffee", TimePoint(), [] { return at(1); });
  const std::string since = nlohmann::json::parse(feed.answer(""))["next"];
  constexpr uint64_t kRequests = 5000;
  for (uint64_t id = 0; id < kRequests; ++id) monitor.on_completion({.id = RequestId(id)}, at(1));
  const std::string text = feed.answer(since);
  EXPECT_LE(text.size(), MonitorFeed::kBytesMax);
  EXPECT_GT(text.size(), MonitorFeed::kBytesMax / 2);
  const nlohmann::json answer = nlohmann::json::parse(text);
  EXPECT_EQ(answer["requests"].size() + answer["lost"].get<size_t>(), kRequests);
  EXPECT_EQ(answer["requests"].back()["id"], std::to_string(kRequests - 1));
}

// The model: each event is given once, in order, or lost.
TEST(Feed, NothingIsGivenTwiceOrForgotten) {
  std::mt19937_64 random(fresh_seed());
  for (int run = 0; run < 20; ++run) {
    Monitor monitor(kEvents);
    TimePoint now = at(0);
    MonitorFeed feed(monitor, "c0ffee", at(0), [&now] { return now; });
    std::string next = nlohmann::json::parse(feed.answer(""))["next"];
    uint64_t written = 0, seen = 0;
    for (int step = 0; step < 60; ++step) {
      for (uint64_t count = random() % (kEvents + 8); count > 0; --count) {
        monitor.on_completion({.id = RequestId(written++)}, now);
      }
      now += Duration::milliseconds(static_cast<int64_t>(random() % 300));
      const nlohmann::json answer = nlohmann::json::parse(feed.answer(next));
      next = answer["next"];
      const nlohmann::json& given = answer["requests"];
      const bool overtaken = written - seen > kEvents;
      ASSERT_EQ(answer["full"], overtaken);
      ASSERT_EQ(given.size(), overtaken ? kEvents : written - seen);
      for (size_t i = 0; i < given.size(); ++i) ASSERT_EQ(given[i]["id"], std::to_string(written - given.size() + i));
      seen = written;
    }
  }
}

TEST(PageFiles, AreSmallAndHaveTheirTypes) {
  size_t bytes = 0;
  for (const PageFile& file : page_files()) bytes += file.content.size();
  EXPECT_LE(bytes, 300'000u);
  ASSERT_NE(find_page_file("/"), nullptr);
  EXPECT_EQ(content_type_of(*find_page_file("/")), "text/html; charset=utf-8");
  ASSERT_NE(find_page_file("/monitor/page.js"), nullptr);
  EXPECT_EQ(content_type_of(*find_page_file("/monitor/page.js")), "text/javascript; charset=utf-8");
  EXPECT_EQ(content_type_of(*find_page_file("/monitor/style.css")), "text/css; charset=utf-8");
  for (const char* const path : {"", "/monitor/", "/monitor", "/monitor/../page.js", "/page.js", "/monitor/feed"}) {
    EXPECT_EQ(find_page_file(path), nullptr) << path;
  }
}

}  // namespace
}  // namespace foliot
