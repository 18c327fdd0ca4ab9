//! Which addresses are public. `IpAddr::is_global` is not stable, and no crate for it is kept; the tables are IANA's registries
//! of special-purpose addresses, and whatever leads inside by way of another kind of address counts as inside.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

pub(super) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => !V4_SPECIAL
            .iter()
            .any(|(network, bits)| within(u32::from(address), u32::from(*network), 32 - bits)),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

/// Ranges that are not for anybody on the internet, with the length of their prefix.
const V4_SPECIAL: [(Ipv4Addr, u32); 17] = [
    (Ipv4Addr::new(0, 0, 0, 0), 8),       // this network
    (Ipv4Addr::new(10, 0, 0, 0), 8),      // private
    (Ipv4Addr::new(100, 64, 0, 0), 10),   // shared by carriers
    (Ipv4Addr::new(127, 0, 0, 0), 8),     // loopback
    (Ipv4Addr::new(169, 254, 0, 0), 16),  // link-local, where clouds keep their metadata
    (Ipv4Addr::new(172, 16, 0, 0), 12),   // private
    (Ipv4Addr::new(192, 0, 0, 0), 24),    // protocol assignments
    (Ipv4Addr::new(192, 0, 2, 0), 24),    // documentation
    (Ipv4Addr::new(192, 31, 196, 0), 24), // AS112
    (Ipv4Addr::new(192, 52, 193, 0), 24), // AMT
    (Ipv4Addr::new(192, 88, 99, 0), 24),  // 6to4 relays
    (Ipv4Addr::new(192, 168, 0, 0), 16),  // private
    (Ipv4Addr::new(192, 175, 48, 0), 24), // AS112
    (Ipv4Addr::new(198, 18, 0, 0), 15),   // benchmarks
    (Ipv4Addr::new(198, 51, 100, 0), 24), // documentation
    (Ipv4Addr::new(203, 0, 113, 0), 24),  // documentation
    (Ipv4Addr::new(224, 0, 0, 0), 3),     // multicast, reserved, broadcast
];

/// Only 2000::/3 is handed out at all: loopback, mapped and compatible IPv4, NAT64, unique local, link-local, site-local and
/// multicast addresses all lie outside of it. In it, these are not ordinary either.
const V6_SPECIAL: [(Ipv6Addr, u32); 6] = [
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23), // protocol assignments: Teredo, benchmarks, ORCHID
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32), // documentation
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16), // 6to4: holds an IPv4 address
    (Ipv6Addr::new(0x2620, 0x4f, 0x8000, 0, 0, 0, 0, 0), 48), // AS112
    (Ipv6Addr::new(0x3ffe, 0, 0, 0, 0, 0, 0, 0), 16), // 6bone, given back
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20), // documentation
];

fn is_public_v6(address: Ipv6Addr) -> bool {
    let bits = u128::from(address);
    let is_handed_out = bits >> 125 == 1;
    // ISATAP: an IPv4 address behind `0:5efe` or `200:5efe`, reached from inside a network.
    let is_isatap = matches!(bits >> 32 & 0xfdff_ffff, 0x5efe);
    let is_special = V6_SPECIAL
        .iter()
        .any(|(network, length)| bits >> (128 - length) == u128::from(*network) >> (128 - length));
    is_handed_out && !is_isatap && !is_special
}

fn within(address: u32, network: u32, host_bits: u32) -> bool {
    address >> host_bits == network >> host_bits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_edges_of_every_range() {
        for (network, bits) in V4_SPECIAL {
            let first = u32::from(network);
            let last = first | u32::MAX.checked_shr(bits).unwrap_or(0);
            for inside in [first, last] {
                let address = Ipv4Addr::from(inside);
                assert!(!is_public(address.into()), "{address}");
            }
        }
        for public in [
            "1.1.1.1",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.0",
            "169.253.255.255",
            "169.255.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "192.0.1.0",
            "192.167.255.255",
            "192.169.0.0",
            "198.17.255.255",
            "198.20.0.0",
            "223.255.255.255",
            "2606:4700::1111",
            "2a00:1450::1",
            "2001:200::1",
            "2003::1",
        ] {
            assert!(is_public(public.parse().unwrap()), "{public}");
        }
        for inside in [
            "::",
            "::1",
            "::7f00:1",
            "::ffff:127.0.0.1",
            "::ffff:8.8.8.8",
            "64:ff9b::7f00:1",
            "64:ff9b:1::1",
            "100::1",
            "2001::1",
            "2001:0:7f00:1::1",
            "2001:2::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "2002:a9fe:a9fe::1",
            "3fff::1",
            "3ffe::1",
            "4000::1",
            "5f00::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "2a00:1450::5efe:7f00:1",
            "2a00:1450::200:5efe:a00:1",
        ] {
            assert!(!is_public(inside.parse().unwrap()), "{inside}");
        }
    }
}
