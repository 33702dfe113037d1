// ProgressBar: the progress of long work, shown to a person: a bar that redraws itself
// on a terminal, and a line for each thing that is begun everywhere else.
#ifndef FOLIOT_APP_COMMANDS_PROGRESS_BAR_H_
#define FOLIOT_APP_COMMANDS_PROGRESS_BAR_H_

#include <functional>
#include <set>
#include <string>
#include <string_view>

namespace foliot {

class ProgressBar {
 public:
  // `verb`: what is done to what is shown, "compiling".
  explicit ProgressBar(std::string verb = "compiling");
  ~ProgressBar() { clear(); }

  // `share` in [0, 1].
  void show(std::string_view what, std::string_view step, double share);
  // Takes the bar away, so that a line can be printed.
  void clear();

 private:
  const std::string verb_;
  bool terminal_;
  bool shown_ = false;
  std::set<std::string, std::less<>> begun_;
};

}  // namespace foliot

#endif  // FOLIOT_APP_COMMANDS_PROGRESS_BAR_H_
