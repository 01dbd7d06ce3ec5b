//! Amounts of resources: read as Kubernetes writes them, shown as short as they can be.

use fluxion_api::Quantities;

/// An amount in thousandths of its unit (CPU, byte, piece).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Amount(pub u128);

impl Amount {
    /// Reads `2500m`, `4`, `1.5`, `16Gi`; `None` for what is none or too large.
    pub fn parse(text: &str) -> Option<Self> {
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, suffix) = text.split_at(end);
        let factor: u128 = match suffix {
            "m" => 1,
            "" => 1000,
            "k" => 1000 * 1000,
            "M" => 1000 * 1000_u128.pow(2),
            "G" => 1000 * 1000_u128.pow(3),
            "T" => 1000 * 1000_u128.pow(4),
            "P" => 1000 * 1000_u128.pow(5),
            "E" => 1000 * 1000_u128.pow(6),
            "Ki" => 1000 << 10,
            "Mi" => 1000 << 20,
            "Gi" => 1000 << 30,
            "Ti" => 1000 << 40,
            "Pi" => 1000 << 50,
            "Ei" => 1000 << 60,
            _ => return None,
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if whole.is_empty() && fraction.is_empty() || fraction.len() > 12 {
            return None;
        }
        let whole: u128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
        let part: u128 = if fraction.is_empty() { 0 } else { fraction.parse().ok()? };
        let scale = 10_u128.pow(u32::try_from(fraction.len()).ok()?);
        Some(Self(whole.checked_mul(factor)?.checked_add(part.checked_mul(factor)? / scale)?))
    }

    /// The amount of `resource` in `quantities`; nothing where it isn't named.
    pub fn of(quantities: &Quantities, resource: &str) -> Self {
        quantities.get(resource).and_then(|text| Self::parse(text)).unwrap_or_default()
    }

    /// The part of `whole` this is, 0 to 1; 0 of nothing.
    pub fn ratio(self, whole: Self) -> f64 {
        if whole.0 == 0 { 0.0 } else { (self.0 as f64 / whole.0 as f64).clamp(0.0, 1.0) }
    }

    /// The sum, at most what fits.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// The difference, at least 0.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// Pieces or CPUs: `4`, `2.5`, `0.25`.
    pub fn pieces(self) -> String {
        let (whole, part) = (self.0 / 1000, self.0 % 1000);
        if part == 0 {
            return whole.to_string();
        }
        format!("{whole}.{part:03}").trim_end_matches('0').to_owned()
    }

    /// Bytes in the largest unit that they fill: `512Mi`, `1.5Gi`.
    pub fn bytes(self) -> String {
        let bytes = self.0.div_ceil(1000);
        let units = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
        let mut place = 0;
        while place + 1 < units.len() && bytes >> (10 * (place + 1)) > 0 {
            place += 1;
        }
        let unit = 1_u128 << (10 * place);
        let tenths = bytes % unit * 10 / unit;
        let whole = bytes / unit;
        if tenths == 0 || whole >= 100 {
            format!("{whole}{}", units[place])
        } else {
            format!("{whole}.{tenths}{}", units[place])
        }
    }

    /// As fits the resource: bytes for memory and the like, else pieces.
    pub fn show(self, resource: &str) -> String {
        if is_bytes(resource) { self.bytes() } else { self.pieces() }
    }
}

/// Whether a resource is counted in bytes.
fn is_bytes(resource: &str) -> bool {
    matches!(resource, "memory" | "ephemeral-storage" | "storage") || resource.starts_with("hugepages-")
}

/// Whether a resource is a GPU or a part of one.
pub(super) fn is_gpu(resource: &str) -> bool {
    resource.ends_with("/gpu") || resource.rsplit('.').next() == Some("gpu") || resource.contains("/mig-")
}

/// Quantities in one cell: `cpu=8,mem=16Gi,gpu=4`. Pods are left out: the members tell them.
pub(super) fn summary(quantities: &Quantities, full_names: bool) -> String {
    let order = |name: &str| match name {
        "cpu" => 0,
        "memory" => 1,
        _ if is_gpu(name) => 2,
        _ => 3,
    };
    let mut names: Vec<&String> = quantities.keys().filter(|name| name.as_str() != "pods").collect();
    names.sort_by_key(|name| (order(name), name.as_str()));
    let mut text = String::new();
    for name in names {
        let raw = &quantities[name];
        let amount = Amount::parse(raw);
        if amount == Some(Amount(0)) {
            continue;
        }
        let shown = amount.map_or_else(|| raw.clone(), |amount| amount.show(name));
        let name = match name.as_str() {
            name if full_names => name,
            "memory" => "mem",
            "ephemeral-storage" => "disk",
            name => name.rsplit('/').next().unwrap_or(name),
        };
        put!(text, "{}{name}={shown}", if text.is_empty() { "" } else { "," });
    }
    if text.is_empty() { "-".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read() {
        for (text, thousandths) in [
            ("4", Some(4000)),
            ("2500m", Some(2500)),
            ("1.5", Some(1500)),
            ("16Gi", Some(16 * 1024 * 1024 * 1024 * 1000)),
            ("2.5Ki", Some(2_560_000)),
            ("1k", Some(1_000_000)),
            ("", None),
            ("m", None),
            ("-1", None),
            ("1x", None),
            ("1.1.1", None),
            ("999999999999999999999999999999999999999999", None),
        ] {
            assert_eq!(Amount::parse(text), thousandths.map(Amount), "{text}");
        }
    }

    #[test]
    fn amounts_are_shown() {
        assert_eq!(Amount(4000).pieces(), "4");
        assert_eq!(Amount(250).pieces(), "0.25");
        assert_eq!(Amount::parse("1536Mi").unwrap().bytes(), "1.5Gi");
        assert_eq!(Amount::parse("16Gi").unwrap().bytes(), "16Gi");
        assert_eq!(Amount::parse("512").unwrap().bytes(), "512");
        assert_eq!(Amount::parse("0").unwrap().bytes(), "0");
    }

    #[test]
    fn a_request_in_one_cell() {
        let request: Quantities = [
            ("nvidia.com/gpu", "4"),
            ("memory", "17179869184"),
            ("cpu", "2500m"),
            ("pods", "4"),
            ("ephemeral-storage", "0"),
            ("hugepages-1Gi", "2147483648"),
            ("weird", "?"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
        assert_eq!(summary(&request, false), "cpu=2.5,mem=16Gi,gpu=4,hugepages-1Gi=2Gi,weird=?");
        assert_eq!(summary(&Quantities::new(), false), "-");
    }
}
