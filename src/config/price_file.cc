#include "config/price_file.h"

#include "config/toml_file.h"
#include "config/toml_reader.h"

namespace foliot {

Result<KindPrices> read_price_file(const std::filesystem::path& file) {
  FOLIOT_ASSIGN_OR_RETURN(const toml::table table, read_toml_file(file));
  TomlReader reader(table, file.string());
  KindPrices prices;
  for (const auto& [kind, value] : table) reader.not_negative(kind.str(), prices[std::string(kind.str())]);
  FOLIOT_RETURN_IF_ERROR(reader.finish());
  return prices;
}

}  // namespace foliot
