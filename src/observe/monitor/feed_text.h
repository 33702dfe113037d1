// FeedText: answers of a monitor's feed as a terminal shows them.
//
// Threading: not thread-safe.
#ifndef FOLIOT_OBSERVE_MONITOR_FEED_TEXT_H_
#define FOLIOT_OBSERVE_MONITOR_FEED_TEXT_H_

#include <memory>
#include <string>

#include "foundation/base/status.h"

namespace foliot {

struct FeedSample;

class FeedText {
 public:
  FeedText();
  FeedText(const FeedText&) = delete;
  FeedText& operator=(const FeedText&) = delete;
  ~FeedText();

  // Rates are since the answer before, if it was of the same process. Errors: kInvalidArgument: it is no answer of
  // MonitorFeed::kVersion.
  Result<std::string> show(const std::string& answer);
  // What the feed is to be asked for next: everything, or what comes after the last answer.
  const std::string& next() const { return next_; }

 private:
  std::unique_ptr<FeedSample> before_;
  std::string next_;
};

}  // namespace foliot

#endif  // FOLIOT_OBSERVE_MONITOR_FEED_TEXT_H_
