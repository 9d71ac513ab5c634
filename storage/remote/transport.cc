#include "rhizome/transport.h"

namespace rhizome {

std::string_view ServiceName(Service service) {
  return service == Service::kRows ? "rows" : "echo";
}

MessageStats& MessageStats::operator+=(const MessageStats& more) {
  messages_out += more.messages_out;
  messages_in += more.messages_in;
  bytes_out += more.bytes_out;
  bytes_in += more.bytes_in;
  wait_seconds += more.wait_seconds;
  return *this;
}

MessageStats TransportStats::Total() const {
  MessageStats total = exchanged;
  for (const MessageStats& of_service : asked) total += of_service;
  for (const MessageStats& of_service : served) total += of_service;
  return total;
}

}  // namespace rhizome
