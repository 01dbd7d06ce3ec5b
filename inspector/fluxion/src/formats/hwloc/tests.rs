use super::*;

fn paths(text: &str, allowed: &Allowlist) -> Result<Vec<String>, ReadError> {
    let mut graph = Graph::new();
    load(&mut graph, text.as_bytes(), allowed)?;
    let of = |id| {
        let vertex = graph.vertex(id);
        format!("{}[{}]", graph.path_text(vertex.path(Subsystem::CONTAINMENT).unwrap()), vertex.size)
    };
    Ok(graph.vertex_ids().map(of).collect())
}

/// A machine as hwloc 1.x writes it: two memory nodes with a socket of two cores each.
fn old() -> String {
    let socket = |first: usize, devices: &str| {
        let cpus = 3 << first;
        let cores: String = [first, first + 1]
            .map(|core| {
                format!(r#"<object type="Core" cpuset="{:#x}"><object type="PU"/></object>"#, 1 << core)
            })
            .concat();
        format!(
            r#"<object type="NUMANode" cpuset="{cpus:#x}"><object type="Socket" cpuset="{cpus:#x}">
            <object type="Cache" depth="3" cache_type="0" cache_size="2048" cpuset="{cpus:#x}">{cores}</object></object>
            <object type="Bridge"><object type="PCIDev">{devices}</object></object></object>"#
        )
    };
    let devices = r#"<object type="OSDev" name="eth0" osdev_type="2"/><object type="OSDev" name="dma0" osdev_type="4"/>
        <object type="OSDev" name="sda" osdev_type="0"><info name="Size" value="195360984"/><info name="LinuxDeviceID" value="8:0"/></object>
        <object type="OSDev" name="opencl0d3" osdev_type="5"/><object type="OSDev" name="card0" osdev_type="1"/>
        <object type="OSDev" name="rsmi2" osdev_type="1"/>"#;
    format!(
        r#"<?xml version="1.0"?><!DOCTYPE topology SYSTEM "hwloc.dtd"><topology>
        <object type="Machine" cpuset="0xf"><info name="HostName" value="fox021"/>{}{}</object></topology>"#,
        socket(0, ""),
        socket(2, devices)
    )
}

#[test]
fn memory_becomes_a_leaf_and_devices_follow_it() {
    assert_eq!(
        paths(&old(), &Allowlist::all()).unwrap(),
        [
            "/cluster0[1]",
            "/cluster0/fox021[1]",
            "/cluster0/fox021/socket0[1]",
            "/cluster0/fox021/socket0/core0[1]",
            "/cluster0/fox021/socket0/core0/pu0[1]",
            "/cluster0/fox021/socket0/core1[1]",
            "/cluster0/fox021/socket0/core1/pu1[1]",
            "/cluster0/fox021/socket0/numanode0[1]",
            "/cluster0/fox021/socket1[1]",
            "/cluster0/fox021/socket1/core2[1]",
            "/cluster0/fox021/socket1/core2/pu2[1]",
            "/cluster0/fox021/socket1/core3[1]",
            "/cluster0/fox021/socket1/core3/pu3[1]",
            "/cluster0/fox021/socket1/numanode1[1]",
            "/cluster0/fox021/socket1/storage1[195]",
            "/cluster0/fox021/socket1/gpu3[1]",
            "/cluster0/fox021/socket1/gpu2[1]"
        ]
    );
}

#[test]
fn an_allow_list_makes_the_rest_transparent() {
    assert_eq!(
        paths(&old(), &Allowlist::parse("node,core, cluster")).unwrap(),
        [
            "/cluster0[1]",
            "/cluster0/fox021[1]",
            "/cluster0/fox021/core0[1]",
            "/cluster0/fox021/core1[1]",
            "/cluster0/fox021/core2[1]",
            "/cluster0/fox021/core3[1]"
        ]
    );
}

#[test]
fn newer_files_keep_a_cache_that_divides_a_socket() {
    let text = r#"<topology version="2.0"><object type="Machine" cpuset="0x3"><info name="HostName" value="fox"/>
        <object type="Package" cpuset="0x3"><object type="NUMANode"/>
        <object type="L3Cache" depth="3" cache_size="8388608"><object type="Core"/></object>
        <object type="L3Cache" depth="3" cache_size="8388608"><object type="Core"/><object type="Core"/></object>
        </object></object></topology>"#;
    let all = paths(text, &Allowlist::all()).unwrap();
    assert_eq!(
        all[3..5],
        ["/cluster0/fox/socket0/L3cache0[8192]", "/cluster0/fox/socket0/L3cache0/core0[1]"]
    );
    assert_eq!(all.last().map(String::as_str), Some("/cluster0/fox/socket0/numanode0[1]"));
}

#[test]
fn a_disk_needs_a_size_unless_nobody_asks_for_it() {
    let text = old().replace(r#"<info name="Size" value="195360984"/>"#, "");
    assert!(paths(&text, &Allowlist::all()).unwrap_err().to_string().contains("getting the size"));
    assert!(paths(&text, &Allowlist::parse("node,core")).is_ok());
    let text = old().replace("195360984", "much");
    assert!(paths(&text, &Allowlist::all()).unwrap_err().to_string().contains("parsing the size"));
}

#[test]
fn nothing_and_nonsense() {
    assert_eq!(paths("", &Allowlist::all()).unwrap(), ["/cluster0[1]"]);
    let deep = format!(
        "<topology>{}{}</topology>",
        r#"<object type="Group">"#.repeat(5000),
        "</object>".repeat(5000)
    );
    for text in ["<topology", "<a/>", "<topology/>", &deep] {
        assert!(paths(text, &Allowlist::all()).is_err(), "{text:.40}");
    }
}
