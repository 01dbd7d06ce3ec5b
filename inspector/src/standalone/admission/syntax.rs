//! Syntax of names, labels and keys: each rule returns its violations in kube-apiserver's words.

/// DNS labels, names of labels, values of labels.
const LABEL_MAX: usize = 63;
/// DNS subdomains.
const SUBDOMAIN_MAX: usize = 253;

const DNS_LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must \
     start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
     '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const DNS_SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or \
     '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
     '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const NAME_PART: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with \
     an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
     '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const QUALIFIED_NAME: &str = "a qualified name must consist of alphanumeric characters, '-', '_' or '.', and must start \
     and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
     '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. \
     'example.com/MyName')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', \
     and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for \
     validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

/// A rule for names: returns the violations of a text.
pub(super) type Rule = fn(&str) -> Vec<String>;

/// RFC 1123: names of containers, namespaces, volumes.
pub(super) fn dns_label(text: &str) -> Vec<String> {
    rules(text, LABEL_MAX, is_dns_label(text), DNS_LABEL)
}

/// RFC 1123: names of most objects.
pub(super) fn dns_subdomain(text: &str) -> Vec<String> {
    rules(text, SUBDOMAIN_MAX, text.split('.').all(is_dns_label), DNS_SUBDOMAIN)
}

/// Keys of labels, taints and annotations, names of resources: `name` or `example.com/name`.
pub(super) fn qualified_name(text: &str) -> Vec<String> {
    let (prefix, name) = match text.split_once('/') {
        None => (None, text),
        Some((prefix, name)) if !name.contains('/') => (Some(prefix), name),
        Some(_) => return vec![QUALIFIED_NAME.to_owned()],
    };
    let mut broken = Vec::new();
    match prefix {
        Some("") => broken.push("prefix part must be non-empty".to_owned()),
        Some(prefix) => {
            broken.extend(dns_subdomain(prefix).into_iter().map(|why| format!("prefix part {why}")));
        }
        None => {}
    }
    if name.is_empty() {
        broken.push("name part must be non-empty".to_owned());
    } else if name.len() > LABEL_MAX {
        broken.push(format!("name part {}", longest(LABEL_MAX)));
    }
    if !is_name_part(name) {
        broken.push(NAME_PART.to_owned());
    }
    broken
}

/// Values of labels and taints.
pub(super) fn label_value(text: &str) -> Vec<String> {
    rules(text, LABEL_MAX, text.is_empty() || is_name_part(text), LABEL_VALUE)
}

/// Names of ports: as in IANA's service registry.
pub(super) fn port_name(text: &str) -> Vec<String> {
    let letter = |byte: u8| byte.is_ascii_lowercase();
    let plain = |byte: u8| letter(byte) || byte.is_ascii_digit();
    let all = text.bytes().all(|byte| plain(byte) || byte == b'-');
    [
        (text.len() <= 15, "must be no more than 15 characters"),
        (all, "must contain only alphanumeric characters (a-z, 0-9), and hyphens (-)"),
        (text.bytes().any(letter), "must contain at least one letter (a-z)"),
        (!text.contains("--"), "must not contain consecutive hyphens"),
        (!text.starts_with('-') && !text.ends_with('-'), "must not begin or end with a hyphen"),
    ]
    .into_iter()
    .filter(|(holds, _)| !holds)
    .map(|(_, why)| why.to_owned())
    .collect()
}

fn rules(text: &str, most: usize, holds: bool, why: &str) -> Vec<String> {
    let mut broken = Vec::new();
    if text.len() > most {
        broken.push(longest(most));
    }
    if !holds {
        broken.push(why.to_owned());
    }
    broken
}

fn longest(most: usize) -> String {
    format!("must be no more than {most} bytes")
}

fn is_dns_label(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    framed(text, plain) && text.bytes().all(|byte| plain(byte) || byte == b'-')
}

fn is_name_part(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric();
    framed(text, plain) && text.bytes().all(|byte| plain(byte) || b"-_.".contains(&byte))
}

/// Whether there is a first and a last byte, and both `fit`.
fn framed(text: &str, fit: impl Fn(u8) -> bool) -> bool {
    text.bytes().next().is_some_and(&fit) && text.bytes().next_back().is_some_and(&fit)
}
