#include "edge/jobs/http_webhook_sender.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace foliot {
namespace {

using ::testing::HasSubstr;

TEST(HttpWebhookSender, SendsToHostsThatAreAllowedAlone) {
  const HttpWebhookSender sender = *HttpWebhookSender::make({"Hooks.example.com", "10.0.0.7:9000", "[::1]:80"});
  for (const char* url :
       {"http://hooks.example.com/a?b=c", "https://HOOKS.example.com/", "http://hooks.example.com:80/x",
        "https://hooks.example.com:443", "http://10.0.0.7:9000/job", "http://[::1]/"}) {
    EXPECT_TRUE(sender.check(url).ok()) << url << ": " << sender.check(url).message();
  }
  for (const char* url :
       {"http://other.example.com/", "http://hooks.example.com.evil.org/", "http://evil.org/hooks.example.com",
        "http://evil.org#hooks.example.com", "http://hooks.example.com:8080/", "https://hooks.example.com:80/",
        "http://10.0.0.7/", "http://10.0.0.7:9001/", "http://169.254.169.254/", "http://localhost/"}) {
    EXPECT_THAT(sender.check(url).message(), HasSubstr("is not allowed")) << url;
  }
}

TEST(HttpWebhookSender, OtherSchemesAndSecretsInUrlsAreRefused) {
  const HttpWebhookSender sender = *HttpWebhookSender::make({"h"});
  EXPECT_THAT(sender.check("file:///etc/passwd").message(), HasSubstr("must begin with http"));
  EXPECT_THAT(sender.check("gopher://h/").message(), HasSubstr("must begin with http"));
  EXPECT_THAT(sender.check("h/path").message(), HasSubstr("is no URL"));
  EXPECT_THAT(sender.check("http://user:password@h/").message(), HasSubstr("has a user or a password"));
  EXPECT_THAT(sender.check("").message(), HasSubstr("webhook"));
}

TEST(HttpWebhookSender, WrongHostsAreNamed) {
  for (const char* host : {"http://h/", "h/path", "h:port", "user@h", "", "a b"}) {
    EXPECT_THAT(HttpWebhookSender::make({host}).status().message(), HasSubstr("--webhooks")) << host;
  }
}

TEST(HttpWebhookSender, AServerThatIsNotThereIsNamed) {
  HttpWebhookSender sender = *HttpWebhookSender::make({"127.0.0.1:1"});
  const Status status = sender.send("http://127.0.0.1:1/job", "{}");
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_THAT(status.message(), HasSubstr("http://127.0.0.1:1/job"));
  EXPECT_EQ(sender.send("http://127.0.0.1:2/job", "{}").code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace foliot
