// DevicePrices: dollars per hour of a device, by its kind.
#ifndef FOLIOT_OBSERVE_METRICS_DEVICE_PRICES_H_
#define FOLIOT_OBSERVE_METRICS_DEVICE_PRICES_H_

#include <map>
#include <string>
#include <string_view>

namespace foliot {

struct DevicePrices {
  std::map<std::string, double, std::less<>> hourly_dollars;
  double default_hourly_dollars = 0;  // of other kinds

  double dollars_per_second(std::string_view kind) const {
    const auto price = hourly_dollars.find(kind);
    return (price == hourly_dollars.end() ? default_hourly_dollars : price->second) / 3600;
  }
};

}  // namespace foliot

#endif  // FOLIOT_OBSERVE_METRICS_DEVICE_PRICES_H_
