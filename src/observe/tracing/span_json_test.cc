#include "observe/tracing/span_json.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace foliot {
namespace {

Span span_of(SpanPart part, SpanKind kind, std::string_view name) {
  Span span{.context = {0x0af7651916cd43dd, 0x8448eb211c80319c, 0xb7ad6b7169203331},
            .parent = 0x10,
            .part = part,
            .kind = kind,
            .begin = TimePoint() + Duration::milliseconds(1),
            .end = TimePoint() + Duration::milliseconds(3),
            .request = RequestId(17)};
  span.set_name(name);
  return span;
}

TEST(SpanJsonTest, SaysAllOfOneSpan) {
  Span span = span_of(SpanPart::kFrontend, SpanKind::kCall, "digits");
  span.refusal = Refusal::kOverload;
  span.rows = 2;
  EXPECT_EQ(
      span_json(std::vector{span}, Duration::seconds(10), "host:1"),
      R"({"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"foliot-frontend"}},)"
      R"({"key":"service.instance.id","value":{"stringValue":"host:1"}}]},"scopeSpans":[{"scope":{"name":"foliot"},)"
      R"("spans":[{"traceId":"0af7651916cd43dd8448eb211c80319c","spanId":"b7ad6b7169203331",)"
      R"("parentSpanId":"0000000000000010","name":"infer digits","kind":2,"startTimeUnixNano":"10001000000",)"
      R"("endTimeUnixNano":"10003000000","attributes":[{"key":"foliot.model","value":{"stringValue":"digits"}},)"
      R"({"key":"foliot.request","value":{"stringValue":"17"}},{"key":"foliot.rows","value":{"intValue":"2"}},)"
      R"({"key":"foliot.refusal","value":{"stringValue":"overload"}}],"status":{"code":2,"message":"overload"}}]}]}]})");
}

TEST(SpanJsonTest, EachPartIsAServiceOfItsOwn) {
  const std::vector<Span> spans = {span_of(SpanPart::kController, SpanKind::kQueue, "m"),
                                   span_of(SpanPart::kWorker, SpanKind::kExec, "m"),
                                   span_of(SpanPart::kWorker, SpanKind::kInput, "m")};
  const std::string json = span_json(spans, Duration(), "i");
  EXPECT_EQ(json.find("foliot-frontend"), std::string::npos);
  EXPECT_LT(json.find("queue m"), json.find("foliot-worker"));
  EXPECT_LT(json.find("foliot-worker"), json.find("EXEC m"));
  EXPECT_LT(json.find("EXEC m"), json.find("INPUT m"));
}

TEST(SpanJsonTest, NamesMayBeHostile) {
  const std::string json = span_json(
      std::vector{span_of(SpanPart::kFrontend, SpanKind::kCall, "a\"\\\n\xff\xc3\xa9\xc0\x80")}, Duration(), "i");
  EXPECT_NE(json.find("\"infer a\\\"\\\\\\u000a\\ufffd\xc3\xa9\\ufffd\\ufffd\""), std::string::npos) << json;
}

TEST(SpanJsonTest, ALongNameIsCut) {
  const Span span = span_of(SpanPart::kFrontend, SpanKind::kCall, std::string(255, 'a'));
  EXPECT_EQ(span.name_text(), std::string(Span::kNameBytesMax, 'a'));
}

// A clock of another process may be behind.
TEST(SpanJsonTest, NoSpanEndsBeforeItBegins) {
  Span span = span_of(SpanPart::kFrontend, SpanKind::kCall, "m");
  span.end = TimePoint();
  EXPECT_NE(span_json(std::vector{span}, Duration(), "i").find("\"endTimeUnixNano\":\"1000000\""), std::string::npos);
}

}  // namespace
}  // namespace foliot
