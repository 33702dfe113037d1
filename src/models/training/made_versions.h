// The versions of a personal model that a server has made, in the model's folder.
#ifndef FOLIOT_MODELS_TRAINING_MADE_VERSIONS_H_
#define FOLIOT_MODELS_TRAINING_MADE_VERSIONS_H_

#include <filesystem>
#include <string>

namespace foliot {

// Of the newest version in the folder; empty: there is none.
std::string newest_name(const std::filesystem::path& folder);
// Of those that a server made and took (kMadeByServer): all but these two.
void remove_older(const std::filesystem::path& folder, const std::string& served, const std::string& before);
// Moves one that is not taken to `.refused` in the model's folder, in place of the one before. One that cannot be moved
// is compared again with the next one.
void set_aside(const std::filesystem::path& version, const std::filesystem::path& folder);

}  // namespace foliot

#endif  // FOLIOT_MODELS_TRAINING_MADE_VERSIONS_H_
