// ApplicationFolder: the applications that a folder defines (NAME/application.toml), as a server or
// a front end serves them: read, shown in the catalog, kept where they learn, and looked at for
// changes.
//
// Threading: one owner, and threads of its own.
#ifndef FOLIOT_NODE_SERVER_APPLICATION_FOLDER_H_
#define FOLIOT_NODE_SERVER_APPLICATION_FOLDER_H_

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "answer/own_policies/policy_runner.h"
#include "answer/selection/selected_inference.h"
#include "foundation/base/status.h"
#include "foundation/core/catalog.h"
#include "foundation/core/feedback_record.h"
#include "node/files/file_watch.h"
#include "node/server/state_keeper.h"

namespace foliot {

class ApplicationFolder {
 public:
  struct Options {
    std::filesystem::path folder;
    std::string state;                     // StateKeeper::start(); empty: nothing is kept
    FeedbackSink* feedback_log = nullptr;  // null: no log is kept
    PolicyPlace policies{};                // of policies in Python
  };
  // From any thread, a sentence or line each.
  struct Reports {
    std::function<void(const std::string&)> on_note;     // what cannot be served, at start()
    std::function<void(const std::string&)> on_failure;  // of what changes later, of the state, and of policies
    std::function<void(const std::string&)> on_line;     // what policies print, and that they work again
  };

  // The references outlive this.
  ApplicationFolder(Options options, SelectedInference& inference, Catalog& catalog, Reports reports);
  ~ApplicationFolder() { stop(); }

  // Once. Errors: as scan_applications() and StateKeeper.
  Status start();
  // For a FileWatch that was made before start(), and runs from then on.
  WatchedFiles definitions();
  // Keeps what was learned. Calling it again does nothing.
  void stop();

 private:
  // Policies in Python have a process each.
  Status run_policies(const std::vector<std::string>& with_own);

  const Options options_;
  SelectedInference& inference_;
  Catalog& catalog_;
  const Reports reports_;
  std::unique_ptr<StateKeeper> state_keeper_;  // null: nothing is kept
  std::map<std::shared_ptr<ServedApplication>, std::unique_ptr<PolicyRunner>> runners_;
};

}  // namespace foliot

#endif  // FOLIOT_NODE_SERVER_APPLICATION_FOLDER_H_
