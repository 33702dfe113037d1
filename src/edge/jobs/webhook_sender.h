// WebhookSender: sends the JSON of a job that has ended to where its client asked. A port; HttpWebhookSender is the
// real one.
#ifndef FOLIOT_EDGE_JOBS_WEBHOOK_SENDER_H_
#define FOLIOT_EDGE_JOBS_WEBHOOK_SENDER_H_

#include <string>

#include "foundation/base/status.h"

namespace foliot {

class WebhookSender {
 public:
  virtual ~WebhookSender() = default;
  // Whether jobs may name it. Errors: kInvalidArgument naming what is wrong, and what to do. Any thread.
  virtual Status check(const std::string& url) const = 0;
  // Once. Errors: kUnavailable naming why; it may be tried again. One thread; blocks.
  virtual Status send(const std::string& url, const std::string& json) = 0;
};

}  // namespace foliot

#endif  // FOLIOT_EDGE_JOBS_WEBHOOK_SENDER_H_
