// muster_cluster: the amounts charged on nodes, and whether more fits (SPEC Q-7, P-3, P-4).
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/small_cluster.h"

namespace muster {
namespace {

using Lines = std::vector<std::string>;

PodTemplate WithPorts(std::vector<HostPort> ports, int64_t cpu = 1) {
  PodTemplate shape = Wants({{"cpu", cpu}});
  shape.host_ports = std::move(ports);
  return shape;
}

class Charges : public ClusterTest {
 protected:
  const NodeId a_ = Put("a", 10, 7);
};

// free = allocatable - used - reserved.
TEST_F(Charges, UsedAndReserved_AreBookedSeparately) {
  const ClassId two = Acquire(2);
  Use(a_, two, 2);
  Reserve(a_, two, 1);
  const Node& node = cluster_.node(a_);
  EXPECT_EQ(node.used.Get(kCpu), 4);
  EXPECT_EQ(node.used.Get(kPods), 2);
  EXPECT_EQ(node.used_pods, 2);
  EXPECT_EQ(node.reserved.Get(kCpu), 2);
  EXPECT_EQ(node.reserved.Get(kPods), 1);
  EXPECT_EQ(node.reserved_pods, 1);
  EXPECT_EQ(node.free.Get(kCpu), 4);
  EXPECT_EQ(node.free.Get(kPods), 4);
  EXPECT_EQ(node.allocatable.Get(kCpu), 10);
  Discharge(a_, two, 1);
  EXPECT_EQ(node.used.Get(kCpu), 2);
  EXPECT_EQ(node.used_pods, 1);
  EXPECT_EQ(node.reserved_pods, 1);
  EXPECT_EQ(node.free.Get(kCpu), 6);
  DischargeReserved(a_, two);
  EXPECT_EQ(node.reserved.Get(kCpu), 0);
  EXPECT_EQ(node.reserved_pods, 0);
  EXPECT_EQ(node.free.Get(kCpu), 8);
  EXPECT_EQ(node.free.Get(kPods), 6);
}

TEST_F(Charges, EachChange_IsLogged) {
  const ClassId cls = Acquire(1);
  const int64_t from = cluster_.log_end();
  Use(a_, cls);
  Reserve(a_, cls);
  DischargeReserved(a_, cls, 1, /*gained=*/false);
  Discharge(a_, cls);
  EXPECT_EQ(LogSince(from), (Lines{"a", "a", "a", "a+"}));
}

TEST_F(Charges, AllocatableChange_KeepsCharges) {
  Use(a_, Acquire(2), 2);
  Reserve(a_, Acquire(3));
  Put("a", 20, 7);
  EXPECT_EQ(cluster_.node(a_).free.Get(kCpu), 13);
  Put("a", 5, 7);
  EXPECT_EQ(cluster_.node(a_).free.Get(kCpu), -2);
}

TEST_F(Charges, Room_CountsToLastPod) {
  const ClassId three = Acquire(3);
  const ClassId nothing = Acquire(Wants({}));
  EXPECT_EQ(cluster_.Room(a_, three, 100), 3);
  EXPECT_EQ(cluster_.Room(a_, three, 2), 2);
  EXPECT_EQ(cluster_.Room(a_, three, 0), 0);
  EXPECT_EQ(cluster_.Room(a_, nothing, 100), 7) << "the node takes so many pods";
  Use(a_, Acquire(1));
  EXPECT_EQ(cluster_.Room(a_, three, 100), 3) << "exactly enough";
  Use(a_, Acquire(1));
  EXPECT_EQ(cluster_.Room(a_, three, 100), 2) << "one too little";
  EXPECT_EQ(cluster_.Room(a_, nothing, 100), 5);
  Use(a_, nothing, 5);
  EXPECT_EQ(cluster_.Room(a_, nothing, 100), 0);
  EXPECT_EQ(cluster_.Room(a_, three, 100), 0);
}

TEST_F(Charges, HostPort_UsedOncePerAddress) {
  const HostPort any{Protocol::kTcp, 80, "0.0.0.0"};
  const HostPort one{Protocol::kTcp, 80, "10.0.0.1"};
  const HostPort two{Protocol::kTcp, 80, "10.0.0.2"};
  const HostPort udp{Protocol::kUdp, 80, "0.0.0.0"};
  const HostPort next{Protocol::kTcp, 81, "0.0.0.0"};
  const ClassId with_one = Acquire(WithPorts({one}));
  EXPECT_EQ(cluster_.Room(a_, with_one, 5), 1) << "two of them would conflict with each other";
  EXPECT_EQ(cluster_.Room(a_, with_one, 0), 0);
  Use(a_, with_one);
  EXPECT_EQ(cluster_.Room(a_, with_one, 5), 0);
  EXPECT_EQ(cluster_.Room(a_, Acquire(WithPorts({any})), 5), 0);
  EXPECT_EQ(cluster_.Room(a_, Acquire(WithPorts({two})), 5), 1);
  EXPECT_EQ(cluster_.Room(a_, Acquire(WithPorts({udp})), 5), 1);
  EXPECT_EQ(cluster_.Room(a_, Acquire(WithPorts({next})), 5), 1);
  EXPECT_EQ(cluster_.Room(a_, Acquire(WithPorts({next, any})), 5), 0) << "one of them is taken";
  EXPECT_EQ(cluster_.Room(a_, Acquire(WithPorts({next, udp})), 5), 1);
  EXPECT_EQ(cluster_.Room(a_, Acquire(WithPorts({next}, 10)), 5), 0) << "a free port is no room";
  EXPECT_EQ(cluster_.Room(a_, Acquire(1), 5), 5) << "a pod without ports is not affected";
  Discharge(a_, with_one);
  EXPECT_EQ(cluster_.Room(a_, with_one, 5), 1);
}

// Another scheduler may place two pods with one host port on a node; the port is free after the last of them is gone.
TEST_F(Charges, HostPort_FreeAfterLastUser) {
  const HostPort port{Protocol::kTcp, 80, "0.0.0.0"};
  const HostPort other{Protocol::kTcp, 90, "0.0.0.0"};
  const ClassId both = Acquire(WithPorts({port, other}));
  const ClassId one = Acquire(WithPorts({port}));
  const ClassId two = Acquire(WithPorts({other}));
  Use(a_, both, 2);
  Use(a_, one);
  Discharge(a_, both, 2);
  EXPECT_EQ(cluster_.Room(a_, one, 5), 0);
  EXPECT_EQ(cluster_.Room(a_, two, 5), 1);
  Reserve(a_, one, 2);
  Use(a_, one, 2);
  Discharge(a_, one);
  EXPECT_EQ(cluster_.Room(a_, one, 5), 0) << "as many use it as reserve it";
  Discharge(a_, one);
  Discharge(a_, one);
  EXPECT_EQ(cluster_.Room(a_, one, 5), 0);
  DischargeReserved(a_, one);
  EXPECT_EQ(cluster_.Room(a_, one, 5), 0);
  DischargeReserved(a_, one);
  EXPECT_EQ(cluster_.Room(a_, one, 5), 1);
  EXPECT_TRUE(cluster_.node(a_).ports.empty());
}

// P-3: a reserved port conflicts with a pod that another scheduler placed on the node.
TEST_F(Charges, ReservedPort_ConflictsWithOtherUser) {
  const HostPort any{Protocol::kTcp, 80, "0.0.0.0"};
  const HostPort one{Protocol::kTcp, 80, "10.0.0.1"};
  const HostPort two{Protocol::kTcp, 80, "10.0.0.2"};
  const HostPort udp{Protocol::kUdp, 80, "0.0.0.0"};
  const ClassId with_one = Acquire(WithPorts({one, udp}));
  const ClassId with_two = Acquire(WithPorts({two}));
  const ClassId with_any = Acquire(WithPorts({any}));
  const ClassId plain = Acquire(1);
  EXPECT_FALSE(cluster_.HasPortConflict(a_, with_one)) << "no pod uses any";
  Reserve(a_, with_one);
  EXPECT_FALSE(cluster_.HasPortConflict(a_, with_one)) << "it holds them itself";
  EXPECT_TRUE(cluster_.ReservationFits(a_, with_one));
  Use(a_, with_two);
  EXPECT_FALSE(cluster_.HasPortConflict(a_, with_one)) << "another address";
  EXPECT_FALSE(cluster_.HasPortConflict(a_, plain));
  Use(a_, with_any);
  EXPECT_TRUE(cluster_.HasPortConflict(a_, with_one));
  EXPECT_FALSE(cluster_.ReservationFits(a_, with_one));
  EXPECT_TRUE(cluster_.ReservationFits(a_, plain)) << "a pod without ports is not affected";
  Discharge(a_, with_any);
  EXPECT_FALSE(cluster_.HasPortConflict(a_, with_one));
  Use(a_, with_one);
  EXPECT_TRUE(cluster_.HasPortConflict(a_, with_one)) << "two of a kind";
  Discharge(a_, with_one);
  Discharge(a_, with_two);
  EXPECT_EQ(cluster_.node(a_).ports.size(), 2U);
  const ClassId with_more = Acquire(WithPorts({{Protocol::kTcp, 90, "0.0.0.0"}, {Protocol::kTcp, 91, "0.0.0.0"}, one}));
  Reserve(a_, with_more);
  EXPECT_TRUE(cluster_.HasPortConflict(a_, with_more)) << "what it holds of other ports is no excuse";
  DischargeReserved(a_, with_more);
  EXPECT_EQ(cluster_.node(a_).ports[0].reserved, 1);
  EXPECT_EQ(cluster_.node(a_).ports[0].used, 0);
}

TEST_F(Charges, ReservationFits_WhileNodeHasCapacity) {
  const ClassId five = Acquire(5);
  Reserve(a_, five, 2);
  EXPECT_TRUE(cluster_.ReservationFits(a_, five)) << "exactly";
  Use(a_, Acquire(1));
  EXPECT_FALSE(cluster_.ReservationFits(a_, five)) << "one too many";
  DischargeReserved(a_, five);
  EXPECT_TRUE(cluster_.ReservationFits(a_, five));
  cluster_.Exclude(five, a_, 100);
  EXPECT_FALSE(cluster_.ReservationFits(a_, five));
}

// P-4, P-3: a node with an untolerated soft taint comes after every node without one; each further taint lowers its
// score.
TEST_F(Charges, SoftTaint_LowersScore) {
  NodeDescription node = NodeWith("b", {{"cpu", 4}, {"nvidia.com/gpu", 4}, {"pods", 10}});
  node.taints = {{"spot", "", TaintEffect::kPreferNoSchedule},
                 {"old", "", TaintEffect::kPreferNoSchedule},
                 {"team", "", TaintEffect::kNoSchedule}};
  const NodeId b = Put(node);
  PodTemplate pod = Wants({{"cpu", 1}});
  EXPECT_EQ(cluster_.BinpackScore(b, Acquire(pod)), -1'000 - 4'000);
  pod.tolerations = {{"spot", /*exists=*/true, "", std::nullopt}};
  EXPECT_EQ(cluster_.BinpackScore(b, Acquire(pod)), -1'000 - 2'000);
  pod.tolerations.push_back({"old", /*exists=*/true, "", TaintEffect::kNoSchedule});
  EXPECT_EQ(cluster_.SoftTaints(b, Acquire(pod)), 1) << "the toleration is for another effect";
  pod.tolerations.push_back({"old", /*exists=*/true, "", TaintEffect::kPreferNoSchedule});
  EXPECT_EQ(cluster_.SoftTaints(b, Acquire(pod)), 0);
}

// Reservations exceed a node if they need more of a resource than is left. Overuse by pods alone does not count.
TEST_F(Charges, ReservationsExceed_OnlyForReservedResources) {
  const ClassId five = Acquire(5);
  Reserve(a_, five, 2);
  EXPECT_FALSE(cluster_.ReservationsExceed(a_)) << "exactly all of it";
  Use(a_, Acquire(1));
  EXPECT_TRUE(cluster_.ReservationsExceed(a_)) << "one too many";
  DischargeReserved(a_, five);
  EXPECT_FALSE(cluster_.ReservationsExceed(a_));
  DischargeReserved(a_, five);
  Use(a_, five, 3);
  EXPECT_LT(cluster_.node(a_).free.Get(kCpu), 0);
  EXPECT_FALSE(cluster_.ReservationsExceed(a_)) << "nothing is reserved";
  Reserve(a_, Acquire(Wants({})));
  EXPECT_FALSE(cluster_.ReservationsExceed(a_)) << "what is reserved is a pod, and there are pods left";
  Put("a", 10, 4);
  EXPECT_TRUE(cluster_.ReservationsExceed(a_)) << "of the last resource";
}

// P-4: the score is the mean share in use of the requested resources, in thousandths, minus 1000 on a node with free
// GPUs that the pod does not request.
TEST_F(Charges, BinpackScore_IsMeanShareInUse) {
  const NodeId b = Put(NodeWith("b", {{"cpu", 8}, {"memory", 1'000}, {"nvidia.com/gpu", 4}, {"pods", 10}}));
  const ClassId cpu = Acquire(1);
  const ClassId gpu = Acquire(Wants({{"nvidia.com/gpu", 1}}));
  const ClassId both = Acquire(Wants({{"cpu", 1}, {"nvidia.com/gpu", 1}}));
  const ClassId nothing = Acquire(Wants({}));
  const ClassId fpga = Acquire(Wants({{"fpga", 1}}));
  const ClassId cpu_and_fpga = Acquire(Wants({{"cpu", 1}, {"fpga", 1}}));
  for (const ClassId cls : {gpu, both}) EXPECT_EQ(cluster_.BinpackScore(b, cls), 0);
  for (const ClassId cls : {cpu, nothing, fpga}) EXPECT_EQ(cluster_.BinpackScore(b, cls), -1'000);
  Use(b, cpu, 2);
  EXPECT_EQ(cluster_.BinpackScore(b, cpu), 250 - 1'000);
  EXPECT_EQ(cluster_.BinpackScore(b, gpu), 0);
  EXPECT_EQ(cluster_.BinpackScore(b, both), 125);
  EXPECT_EQ(cluster_.BinpackScore(b, nothing), 200 - 1'000)
      << "a pod that needs nothing else takes one of the pod places";
  EXPECT_EQ(cluster_.BinpackScore(b, fpga), -1'000) << "there is none of it";
  EXPECT_EQ(cluster_.BinpackScore(b, cpu_and_fpga), 125 - 1'000);
  Reserve(b, gpu, 3);
  EXPECT_EQ(cluster_.BinpackScore(b, gpu), 750) << "what is reserved is taken";
  EXPECT_EQ(cluster_.BinpackScore(b, both), 500);
  Use(b, both);
  EXPECT_EQ(cluster_.BinpackScore(b, gpu), 1'000) << "full";
  EXPECT_EQ(cluster_.BinpackScore(b, cpu), 375) << "no GPU is left that it could keep from others";
  Use(b, gpu);
  EXPECT_EQ(cluster_.BinpackScore(b, gpu), 1'000) << "fuller than full";
  const NodeId c = Put(NodeWith("c", {{"nvidia.com/gpu", 1}, {"pods", 10}}));
  EXPECT_EQ(cluster_.BinpackScore(c, gpu), 0);
  Use(c, gpu);
  EXPECT_EQ(cluster_.BinpackScore(c, gpu), 1'000) << "its only one";
  EXPECT_EQ(cluster_.BinpackScore(a_, cpu), 0);
  Use(a_, Acquire(1));
  EXPECT_EQ(cluster_.BinpackScore(a_, cpu), 100);
  Use(a_, Acquire(6));
  EXPECT_EQ(cluster_.BinpackScore(a_, Acquire(Wants({{"cpu", 1}, {"pods", 9}}))), 700) << "pods are not a share";
}

TEST_F(Charges, BinpackScore_IsRoundedDown) {
  const NodeId b = Put(NodeWith("b", {{"cpu", 3}, {"memory", kMaxAmount}, {"pods", 9}}));
  Use(b, Acquire(2));
  EXPECT_EQ(cluster_.BinpackScore(b, Acquire(1)), 666);
  const ClassId memory = Acquire(Wants({{"memory", kMaxAmount - 1}}));
  Use(b, memory);
  EXPECT_EQ(cluster_.BinpackScore(b, memory), 999) << "large amounts do not overflow";
  EXPECT_EQ(cluster_.BinpackScore(b, Acquire(Wants({{"cpu", 1}, {"memory", 1}}))), 832);
}

class ChargesDeath : public Charges {};

TEST_F(ChargesDeath, DischargeWithoutCharge_Dies) {
  const ClassId cls = Acquire(1);
  const ClassId port = Acquire(WithPorts({{Protocol::kTcp, 80, "0.0.0.0"}}));
  EXPECT_DEATH(Discharge(a_, cls), "invariant");
  Use(a_, cls, 2);
  EXPECT_DEATH(Discharge(a_, cls, 3), "invariant");
  EXPECT_DEATH(DischargeReserved(a_, cls), "invariant");
  EXPECT_DEATH(Discharge(a_, port), "invariant") << "no pod uses that port";
  EXPECT_DEATH(Use(a_, cls, 0), "invariant");
  EXPECT_DEATH(Discharge(a_, cls, 0), "invariant");
  Discharge(a_, cls, 2);
  cluster_.RemoveNode("a");
  EXPECT_DEATH(Use(a_, cls), "invariant") << "no node has that id";
  cluster_.ReleaseClass(port);
  EXPECT_DEATH(cluster_.ReleaseClass(port), "") << "it is gone";
}

}  // namespace
}  // namespace muster
