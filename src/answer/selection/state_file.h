// StateFile: what applications learned, in a file of SQLite, so that it survives a restart.
//
// Changes are written in one transaction, so that the file is of one instant however the
// process ends.
//
// Threading: one at a time.
#ifndef FOLIOT_ANSWER_SELECTION_STATE_FILE_H_
#define FOLIOT_ANSWER_SELECTION_STATE_FILE_H_

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "answer/selection/selected_inference.h"
#include "foundation/base/status.h"

struct sqlite3;

namespace foliot {

class StateFile {
 public:
  using Learned = SelectedInference::Learned;

  // Makes the file if there is none. Errors: kInvalidArgument naming the file, if it cannot be
  // opened, is another kind of file, or is used by another process.
  static Result<StateFile> open(const std::filesystem::path& file);

  // All of it, in the order in which it was written.
  Result<std::vector<Learned>> read();
  // Errors: kInternal, and nothing is written.
  Status write(std::span<const Learned> changes);

 private:
  struct Close {
    void operator()(sqlite3* database) const;
  };
  StateFile(std::string file, sqlite3* database) : file_(std::move(file)), database_(database) {}
  Status run(const char* statement);
  Status error(const char* what) const;

  std::string file_;
  std::unique_ptr<sqlite3, Close> database_;
};

}  // namespace foliot

#endif  // FOLIOT_ANSWER_SELECTION_STATE_FILE_H_
