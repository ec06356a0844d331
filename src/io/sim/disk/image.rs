//! Bytes of one file: sparse pages, shared between images until written.

use std::rc::Rc;

const PAGE: usize = 4096;

/// Content and length of a file. Bytes beyond `len` may be left over in the
/// pages only until `trim`.
#[derive(Clone, Default)]
pub(super) struct Image {
    pages: Vec<Option<Rc<[u8; PAGE]>>>,
    pub(super) len: u64,
}

impl Image {
    /// Copies the bytes from `pos` on; what was never written reads as zero,
    /// also beyond the length.
    pub(super) fn read(&self, pos: u64, out: &mut [u8]) {
        let mut done = 0;
        while done < out.len() {
            let at = pos as usize + done;
            let (page, within) = (at / PAGE, at % PAGE);
            let n = (PAGE - within).min(out.len() - done);
            match self.pages.get(page) {
                Some(Some(data)) => {
                    out[done..done + n].copy_from_slice(&data[within..within + n]);
                }
                _ => out[done..done + n].fill(0),
            }
            done += n;
        }
    }

    /// Overwrites bytes; does not change the length.
    pub(super) fn write(&mut self, pos: u64, data: &[u8]) {
        let mut done = 0;
        while done < data.len() {
            let at = pos as usize + done;
            let (page, within) = (at / PAGE, at % PAGE);
            let n = (PAGE - within).min(data.len() - done);
            if self.pages.len() <= page {
                self.pages.resize(page + 1, None);
            }
            let slot = self.pages[page].get_or_insert_with(|| Rc::new([0; PAGE]));
            Rc::make_mut(slot)[within..within + n].copy_from_slice(&data[done..done + n]);
            done += n;
        }
    }

    /// ftruncate: cut bytes read as zero if the file grows again.
    pub(super) fn set_len(&mut self, len: u64) {
        let shrink = len < self.len;
        self.len = len;
        if shrink {
            self.trim();
        }
    }

    /// Zeroes everything beyond the length.
    pub(super) fn trim(&mut self) {
        let full = self.len as usize / PAGE;
        let within = self.len as usize % PAGE;
        if within > 0
            && let Some(Some(page)) = self.pages.get_mut(full)
            && page[within..].iter().any(|b| *b != 0)
        {
            Rc::make_mut(page)[within..].fill(0);
        }
        self.pages.truncate(full + usize::from(within > 0));
    }
}
