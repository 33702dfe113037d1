// Exit codes of `foliot` (docs/SERVING.md#exit-codes): scripts and units act on them.
#ifndef FOLIOT_APP_COMMANDS_EXIT_CODE_H_
#define FOLIOT_APP_COMMANDS_EXIT_CODE_H_

namespace foliot {

inline constexpr int kExitFailed = 1;          // it could not be done, or what was checked is wrong
inline constexpr int kExitUsage = 2;           // the command line, or the file of --config, is wrong
inline constexpr int kExitNothingToServe = 3;  // no model is at the path, or the one that is cannot be served
inline constexpr int kExitGoalMissed = 4;      // an experiment ran, and missed a goal

}  // namespace foliot

#endif  // FOLIOT_APP_COMMANDS_EXIT_CODE_H_
