// RetrainPeers: the other front ends of a cluster, for the one that retrains personal models for all of them.
//
// Threading: by the retrainer's thread; each function waits for answers, 10 s at most.
#ifndef FOLIOT_MODELS_TRAINING_RETRAIN_PEERS_H_
#define FOLIOT_MODELS_TRAINING_RETRAIN_PEERS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "foundation/base/status.h"

namespace foliot {

class RetrainPeers {
 public:
  // Of one front end's users.
  struct Facts {
    std::string version{};
    std::string quality{};      // as RetrainSchedule::Facts
    uint64_t observations = 0;  // since the process began
    uint64_t of_version = 0;    // of these, since the version is served
  };
  struct Copies {
    std::vector<std::vector<std::byte>> copies{};  // of users (PersonalModel::copy)
    uint64_t pass = 0;                             // to go on with; 0: that was all
  };

  virtual ~RetrainPeers() = default;
  // Names of the others; nullopt: another front end leads, or users are still being handed over.
  virtual std::optional<std::vector<std::string>> led() = 0;
  // Errors, as the next: kUnavailable if it does not answer.
  virtual Result<Facts> facts(const std::string& peer, const std::string& model) = 0;
  // Of users that the leader does not keep. `pass`: that of the answer before; 0 begins.
  virtual Result<Copies> copies(const std::string& peer, const std::string& model, uint64_t pass) = 0;
};

}  // namespace foliot

#endif  // FOLIOT_MODELS_TRAINING_RETRAIN_PEERS_H_
