#include "foundation/config/price_file.h"

#include <optional>
#include <utility>

#include "foundation/config/toml_file.h"
#include "foundation/config/toml_reader.h"

namespace foliot {

Result<KindOffers> read_offer_file(const std::filesystem::path& file) {
  FOLIOT_ASSIGN_OR_RETURN(const toml::table table, read_toml_file(file));
  TomlReader reader(table, file.string());
  KindOffers offers;
  for (const auto& [key, value] : table) {
    const std::string kind(key.str());
    double& price = offers.prices[kind];
    if (!value.is_table()) {
      reader.not_negative(kind, price);
      continue;
    }
    std::optional<TomlReader> offer = reader.table(kind);
    if (!offer->has("dollars")) offer->fail("needs 'dollars', per hour");
    offer->not_negative("dollars", price);
    if (offer->has("devices")) offer->whole("devices", offers.devices[kind]);
    FOLIOT_RETURN_IF_ERROR(offer->finish());
  }
  FOLIOT_RETURN_IF_ERROR(reader.finish());
  return offers;
}

Result<KindPrices> read_price_file(const std::filesystem::path& file) {
  FOLIOT_ASSIGN_OR_RETURN(KindOffers offers, read_offer_file(file));
  return std::move(offers.prices);
}

}  // namespace foliot
