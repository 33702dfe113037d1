// HttpWebhookSender: webhooks by HTTP or HTTPS, to hosts that the operator allows and to no other: so that a client
// cannot make the server call what only the server can reach.
//
// Redirects are not followed, so an allowed host cannot send the call on. A host's address is looked up for each call:
// allow only names whose addresses are trusted.
#ifndef FOLIOT_EDGE_JOBS_HTTP_WEBHOOK_SENDER_H_
#define FOLIOT_EDGE_JOBS_HTTP_WEBHOOK_SENDER_H_

#include <string>
#include <vector>

#include "edge/jobs/webhook_sender.h"
#include "foundation/base/time.h"
#include "foundation/net/http_call.h"

namespace foliot {

class HttpWebhookSender final : public WebhookSender {
 public:
  // `allowed`: each "HOST", for the ports 80 of http and 443 of https, or "HOST:PORT". Errors: kInvalidArgument naming
  // it.
  static Result<HttpWebhookSender> make(const std::vector<std::string>& allowed,
                                        Duration timeout = Duration::seconds(10));

  Status check(const std::string& url) const override;
  // Any answer of 2xx is one. The host must be allowed still.
  Status send(const std::string& url, const std::string& json) override;

 private:
  struct Allowed {
    std::string host;
    uint16_t port = 0;  // 0: the default of its scheme
  };
  HttpWebhookSender(std::vector<Allowed> allowed, Duration timeout) : allowed_(std::move(allowed)), timeout_(timeout) {}

  std::vector<Allowed> allowed_;
  Duration timeout_;
};

}  // namespace foliot

#endif  // FOLIOT_EDGE_JOBS_HTTP_WEBHOOK_SENDER_H_
