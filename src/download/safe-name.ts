/**
 * Makes text from elsewhere safe as part of a file name: it cannot leave the folder, hide the file, look like a flag,
 * change the reading direction, or name a device.
 */
import { cutToBytes } from '../host/files.js'

const MAX_PART_LENGTH = 100

/** Control, format (reading direction, zero width) and unassigned characters, what Windows rejects, and braces. */
const UNSAFE = /[\p{C}\p{Zl}\p{Zp}<>:"/\\|?*{}]/gu

/** An id: everything but `[A-Za-z0-9._-]` becomes `_`; no leading dot or dash; 1 to 100 characters. */
export const safeName = (id: string): string =>
  id
    .replace(/[^A-Za-z0-9._-]/gu, '_')
    .replace(/^[.-]+/, '')
    .slice(0, MAX_PART_LENGTH) || '_'

/** A name that a person chose: letters of any script and spaces stay; 1 to 100 bytes. */
export const safePart = (text: string): string =>
  cutToBytes(
    text
      .normalize('NFC')
      .replace(UNSAFE, '_')
      .replace(/^[\s.-]+/u, ''),
    MAX_PART_LENGTH,
  ).replace(/[\s.]+$/u, '') || '_'

const DEVICE = /^(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³]|conin\$|conout\$)\s*(\.|$)/i

/** Puts `_` before names that Windows reserves for devices, on every system: files are copied between systems. */
export const unreserved = (name: string): string => (DEVICE.test(name) ? `_${name}` : name)
