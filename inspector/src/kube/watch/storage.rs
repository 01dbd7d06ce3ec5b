//! The watches of the objects that describe storage.

use fluxion_scheduler::constraint::volumes::{StorageKey, StorageObject};
use fluxion_scheduler::event::Event;
use fluxion_scheduler::model::SharedStr;
use k8s_openapi::api::core::v1::{Event as ApiEvent, PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::{CSIDriver, CSINode, CSIStorageCapacity, StorageClass, VolumeAttachment};
use kube::runtime::watcher;
use kube::{Api, Client};

use super::known::Known;
use super::{Starting, config, optional};
use crate::kube::translate::{Unreadable, storage};

const STORAGE: &str = "storage.k8s.io/v1";
/// The Events in which provisioners say why they could not create a volume.
const FAILURES: &str = "involvedObject.kind=PersistentVolumeClaim,reason=ProvisioningFailed";

fn said(object: Result<StorageObject, Unreadable>) -> Result<Vec<Event>, Unreadable> {
    object.map(|object| vec![Event::Storage(Box::new(object))])
}

fn gone(key: StorageKey) -> Vec<Event> {
    vec![Event::StorageGone(key)]
}

fn named(key: fn(SharedStr) -> StorageKey) -> impl FnMut(&Known) -> Vec<Event> + Send {
    move |object| gone(key(object.name.clone()))
}

impl Starting<'_> {
    /// Claims, volumes, and what provisioners say about claims.
    pub(super) fn claims(&mut self) {
        let (follow, client) = self.follow("PersistentVolumeClaim", "persistentvolumeclaims");
        let stream = watcher(Api::<PersistentVolumeClaim>::all(client), config());
        let claim_gone =
            |object: &Known| gone(StorageKey::Claim((object.namespace.clone(), object.name.clone())));
        let follow = follow.run(stream, |object| said(storage::claim(object)), claim_gone);
        self.spawn("persistentvolumeclaims", follow);
        let (follow, client) = self.follow("PersistentVolume", "persistentvolumes");
        let stream = watcher(Api::<PersistentVolume>::all(client), config());
        let follow = follow.run(stream, |object| said(storage::volume(object)), named(StorageKey::Volume));
        self.spawn("persistentvolumes", follow);
        // What provisioners say is only shown, so nothing waits for this watch, and nothing is held up if it fails.
        let (follow, client) = self.follow_aside("Event", "events");
        let stream = watcher(Api::<ApiEvent>::all(client), config().fields(FAILURES));
        let event_gone = |object: &Known| gone(StorageKey::Failure(object.uid.clone()));
        let follow = follow.run(stream, |object| said(storage::failure(object)), event_gone);
        self.spawn("events", follow);
    }

    /// Storage classes, and what CSI drivers report.
    pub(super) fn storage(&mut self) {
        macro_rules! kind {
            ($kind:literal, $resource:literal, $object:ty, $translate:expr, $gone:expr) => {
                let (follow, client): (_, Client) = self.follow($kind, $resource);
                let follow = optional::follow(
                    follow,
                    self.served.clone(),
                    STORAGE,
                    move || watcher(Api::<$object>::all(client.clone()), config()),
                    |object: &$object| said($translate(object)),
                    $gone,
                );
                self.spawn($resource, follow);
            };
        }
        let capacity_gone =
            |object: &Known| gone(StorageKey::Capacity((object.namespace.clone(), object.name.clone())));
        kind!(
            "StorageClass",
            "storageclasses",
            StorageClass,
            storage::storage_class,
            named(StorageKey::Class)
        );
        kind!("CSIDriver", "csidrivers", CSIDriver, storage::driver, named(StorageKey::Driver));
        kind!("CSINode", "csinodes", CSINode, storage::node, named(StorageKey::Node));
        kind!(
            "CSIStorageCapacity",
            "csistoragecapacities",
            CSIStorageCapacity,
            storage::capacity,
            capacity_gone
        );
        kind!(
            "VolumeAttachment",
            "volumeattachments",
            VolumeAttachment,
            storage::attachment,
            named(StorageKey::Attachment)
        );
    }
}
