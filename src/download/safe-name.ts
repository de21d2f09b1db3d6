/**
 * Text from elsewhere as a part of a file's name. Whatever a server calls its runs, it cannot leave the folder, hide
 * a file, look like a flag, turn the reading direction, or name a device.
 */
import { cutToBytes } from '../host/files.js'

const PART_MOST = 100

/** Control, format (reading direction, zero width) and unassigned characters, what Windows refuses, and braces. */
const UNFIT = /[\p{C}\p{Zl}\p{Zp}<>:"/\\|?*{}]/gu

/** An id: everything but `[A-Za-z0-9._-]` becomes `_`; no leading dot or dash; 1 to 100 characters. */
export const safeName = (id: string): string =>
  id
    .replace(/[^A-Za-z0-9._-]/gu, '_')
    .replace(/^[.-]+/, '')
    .slice(0, PART_MOST) || '_'

/** A name that a person chose: letters of any script and spaces stay; 1 to 100 bytes. */
export const safePart = (text: string): string =>
  cutToBytes(
    text
      .normalize('NFC')
      .replace(UNFIT, '_')
      .replace(/^[\s.-]+/u, ''),
    PART_MOST,
  ).replace(/[\s.]+$/u, '') || '_'

const DEVICE = /^(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³]|conin\$|conout\$)\s*(\.|$)/i

/** Names that Windows keeps for devices, with any extension, get a `_` in front: on every system, files travel. */
export const unreserved = (name: string): string => (DEVICE.test(name) ? `_${name}` : name)
