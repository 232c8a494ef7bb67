// SPDX-License-Identifier: BSD-3-Clause
//
// TcpDriver: the driver contract over non-blocking TCP sockets.
//
// Made by tcp_factory; drivers/driver.hpp says how it is called. The engine serialises, so one thread at a time is in
// it.
//
//   TcpDriver ──owns──▶ Connector (until a peer is authenticated)
//             └─owns──▶ Link per connected rank: fd, Sender, Receiver
//
//   up_:      all links that are alive             (poll reads them directly while there are at most few_links)
//   readable_: links with something to read or to present again;  writers_: links with a stuck frame or an owed ready()
//
// With few peers poll() reads their sockets without asking epoll first. For a spinning thread, a read that finds data
// is then one system call instead of two. All sockets are registered edge-triggered, so no message costs an epoll_ctl.
//
// Rejected: TCP_USER_TIMEOUT. It also kills a peer that is alive but computes with a full window (measured: a window
// closed for the timeout ends the connection). check_links() asks the kernel whether the peer's kernel still
// answers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "drivers/driver.hpp"
#include "drivers/net/socket.hpp"
#include "drivers/tcp/connector.hpp"
#include "drivers/tcp/receiver.hpp"
#include "drivers/tcp/sender.hpp"

namespace canele::drivers::tcp {

class TcpDriver final : public Driver, private Connector::Sink {
 public:
  ~TcpDriver() override = default;

 private:
  enum class Timer : std::uint8_t { off, short_interval, long_interval };
  struct Link {
    Link(Rank peer, net::UniqueFd socket, std::string address)
        : rank(peer), fd(std::move(socket)), where(std::move(address)), receiver(peer) {}
    Rank rank;
    bool readable = false;                    ///< is in readable_.
    bool writing = false;                     ///< is in writers_.
    bool ending = false;                      ///< epoll says that the stream ends.
    bool dead = false;                        ///< failed; removed at the end of poll().
    bool watched = true;                      ///< is in the epoll set, as it was during connection set-up.
    int unwatchable = 0;                      ///< errno of an epoll_ctl that failed: the link is lost.
    std::uint64_t lacks_memory_since_ns = 0;  ///< when writes began to fail for lack of memory; 0: they do not.
    net::UniqueFd fd;
    std::string where;
    Sender sender;
    Receiver receiver;
  };

  Status open_impl(DriverContext& context, Address* address, std::string* reason) override;
  Status connect_impl(Rank peer, std::span<const std::byte> address) override;
  Status send_inline_impl(Rank peer, const void* head, std::size_t head_size, const void* body,
                          std::size_t body_size) override;
  Status send_packet_impl(Rank peer, const iovec* pieces, int count, std::size_t size, Token token) override;
  Status bulk_send_impl(Rank peer, std::uint64_t transfer_id, std::uint64_t offset, const iovec* pieces, int count,
                        std::size_t size, Token token) override;
  int poll_impl(int budget) override;
  int descriptor_impl() const override { return epoll_.get(); }
  bool arm_impl(bool on) override;
  void close_impl() override;

  void established(Rank rank, std::uint64_t incarnation, net::UniqueFd fd, const std::string& where) override;
  void gave_up(Rank rank, bool lost, const std::string& reason) override;

  void fill_capabilities();
  void tune(int fd) const;
  Status send_frame(Rank peer, const FrameHeader& header, const iovec* pieces, int count, std::size_t size,
                    Token token);
  bool must_check_epoll(bool found);
  void watch_all();
  void unwatch_all();
  void check_epoll();
  void on_link_event(Rank rank, std::uint32_t what);
  int read_link(Link& link, int* budget);
  static std::string what_broke(const Link& link);
  int read_all(int* budget);
  int read_readable(int* budget);
  int write_links();
  bool lacks_memory_for_long(Link& link) const;
  void check_links();
  void set_timer(bool soon);
  void unblock_writers();
  void mark_readable(Link& link);
  void mark_writing(Link& link);
  void fail(Link& link, bool tell, const std::string& what);
  void sweep();
  void flush(Link& link, int* patience);

  DriverContext* context_ = nullptr;
  net::UniqueFd epoll_;
  net::UniqueFd timer_;
  Timer timer_state_ = Timer::off;
  bool links_due_ = false;     ///< the timer expired
  bool watched_ = false;       ///< at least one link is in the epoll set
  int polls_since_epoll_ = 0;  ///< polls without epoll_wait
  int polls_since_arm_ = 0;    ///< polls since a link had to be in the set
  std::uint64_t last_epoll_ns_ = 0;
  std::uint64_t retried_ns_ = 0;  ///< when blocked writers were last tried again.
  int blocked_ = 0;               ///< writers that wait for EPOLLOUT, as of the last write_links().
  int reported_ = 0;              ///< events reported by the sink functions during this poll.
  int send_buffer_ = 0;           ///< bytes that the kernel may keep, 0: its choice.
  int silence_s_ = 30;            ///< seconds without an answer from a peer's kernel until the peer counts as lost.
  std::size_t dead_ = 0;
  std::unique_ptr<Connector> connector_;
  std::vector<std::unique_ptr<Link>> links_;  ///< by rank
  std::vector<Link*> up_, readable_, writers_;
  std::vector<bool> early_;  ///< by rank: a send answered `full` before there was a link
};

}  // namespace canele::drivers::tcp
