// What the picture is about, as a paper cut of a few shapes. Each is drawn in a box one unit high, its foot at the
// origin and its middle at x = 0, and then scaled to where it stands.
import { hex, mix } from '../colour.js'
import type { Palette } from '../palette.js'
import { pick, type Random } from '../random.js'
import type { Subject } from '../vocabulary.js'
import { short } from './drawing.js'

export type Shape = Subject | 'disc' | 'arch' | 'stone' | 'diamond'

/** `main` is the accent, `dark` its shadow side, `pale` its lit side, `lamp` the colour of light. */
interface Shades {
  readonly main: string
  readonly dark: string
  readonly pale: string
  readonly lamp: string
}

const SHAPES: Readonly<Record<Shape, (shades: Shades) => string>> = {
  boat: ({ main, dark, pale }) =>
    `<path d="M-.62-.28H.62L.42 0H-.42Z" fill="${main}"/><path d="M-.04-.34V-1L-.5-.34Z" fill="${pale}"/>` +
    `<path d="M.03-.34V-.9L.4-.34Z" fill="${dark}"/>`,
  house: ({ main, dark, lamp }) =>
    `<path d="M-.42 0V-.55H.42V0Z" fill="${main}"/><path d="M-.52-.53L0-1 .52-.53Z" fill="${dark}"/>` +
    `<path d="M-.08 0V-.28H.1V0Z" fill="${dark}"/><path d="M.2-.42H.33V-.26H.2ZM-.33-.42H-.2V-.26H-.33Z" fill="${lamp}"/>`,
  tree: ({ main, dark, pale }) =>
    `<path d="M-.05 0L-.03-.5H.03L.05 0Z" fill="${dark}"/><circle cx="-.17" cy="-.55" r=".22" fill="${dark}"/>` +
    `<circle cx=".18" cy="-.58" r=".21" fill="${main}"/><circle cx="0" cy="-.75" r=".25" fill="${main}"/>` +
    `<circle cx="-.07" cy="-.81" r=".13" fill="${pale}"/>`,
  figure: ({ main, dark, pale }) =>
    `<path d="M-.16 0L-.1-.5H.1L.16 0H.04L0-.3-.04 0Z" fill="${dark}"/><circle cx="0" cy="-.88" r=".11" fill="${pale}"/>` +
    `<path d="M-.19-.3C-.19-.62-.14-.76 0-.76S.19-.62.19-.3Z" fill="${main}"/>`,
  animal: ({ main, dark, pale }) =>
    `<path d="M-.4-.42C-.75-.4-.86-.66-.72-.88-.72-.7-.6-.6-.36-.6Z" fill="${main}"/>` +
    `<path d="M-.42-.5C-.42-.66-.2-.66.1-.64S.4-.6.42-.44L.4-.24H-.36Z" fill="${main}"/>` +
    `<path d="M-.38-.3L-.34 0H-.25L-.22-.28ZM-.16-.28L-.14 0H-.06L-.04-.28ZM.14-.28L.16 0H.24L.26-.28ZM.28-.3L.33 0H.41L.41-.34Z" fill="${dark}"/>` +
    `<path d="M.3-.62L.32-.96.44-.82H.56L.64-.96.68-.68.88-.52.66-.42C.5-.38.36-.42.3-.62Z" fill="${main}"/>` +
    `<path d="M.88-.52L.66-.42C.6-.41.56-.42.52-.44L.7-.56Z" fill="${pale}"/><circle cx=".57" cy="-.64" r=".028" fill="${dark}"/>`,
  bird: ({ main, dark, pale }) =>
    `<path d="M-.5-.5C-.3-.62-.1-.6.08-.52.2-.66.36-.68.44-.6L.6-.54.44-.5C.36-.3.1-.22-.14-.34L-.66-.3Z" fill="${main}"/>` +
    `<path d="M-.14-.5C-.22-.8-.1-.96.18-1 .1-.84.16-.66.2-.5Z" fill="${dark}"/><circle cx=".4" cy="-.57" r=".025" fill="${pale}"/>`,
  balloon: ({ main, dark, pale }) =>
    `<circle cx="0" cy="-.66" r=".34" fill="${main}"/><path d="M0-1C.12-.9.12-.42 0-.32-.12-.42-.12-.9 0-1Z" fill="${pale}"/>` +
    `<path d="M-.26-.44L-.07-.14H.07L.26-.44Z" fill="${dark}" fill-opacity=".55"/><path d="M-.09-.14H.09L.07 0H-.07Z" fill="${dark}"/>`,
  tower: ({ main, dark, pale, lamp }) =>
    `<path d="M-.16 0L-.1-.74H.1L.16 0Z" fill="${main}"/><path d="M-.138-.27L-.123-.46H.123L.138-.27Z" fill="${pale}"/>` +
    `<path d="M-.14-.74H.14V-.78H-.14Z" fill="${dark}"/><path d="M-.08-.78H.08V-.9H-.08Z" fill="${lamp}"/><path d="M-.11-.9L0-1 .11-.9Z" fill="${dark}"/>`,
  vehicle: ({ main, dark, lamp }) =>
    `<path d="M-.8-.16V-.44L-.52-.5-.32-.78H.3L.52-.5.8-.4V-.16Z" fill="${main}"/>` +
    `<path d="M-.4-.5L-.26-.7H-.04V-.5ZM.04-.5V-.7H.26L.4-.5Z" fill="${lamp}" fill-opacity=".8"/>` +
    `<circle cx="-.45" cy="-.14" r=".15" fill="${dark}"/><circle cx=".45" cy="-.14" r=".15" fill="${dark}"/>`,
  flower: ({ main, dark, pale }) =>
    `<path d="M-.02 0C-.05-.3-.02-.5 0-.66L.03-.66C.02-.5.03-.3.02 0Z" fill="${dark}"/>` +
    `<path d="M0-.16C.16-.4.3-.36.36-.34.3-.2.16-.1 0-.16Z" fill="${dark}"/>` +
    [0, 72, 144, 216, 288]
      .map(
        (turn) =>
          `<ellipse cx="0" cy="-.9" rx=".1" ry=".17" fill="${main}" transform="rotate(${turn} 0 -.72)"/>`,
      )
      .join('') +
    `<circle cx="0" cy="-.72" r=".09" fill="${pale}"/>`,
  disc: ({ main, dark }) =>
    `<circle cx="0" cy="-.5" r=".5" fill="${main}"/><path d="M0-1A.5.5 0 0 1 0 0 .8.8 0 0 0 0-1Z" fill="${dark}" fill-opacity=".55"/>`,
  arch: ({ main, dark }) =>
    `<path d="M-.5 0V-.55A.5.5 0 0 1 .5-.55V0H.24V-.52A.24.24 0 0 0-.24-.52V0Z" fill="${main}"/>` +
    `<path d="M.5-.55V0H.42V-.55A.42.42 0 0 0 0-.97V-1.05A.5.5 0 0 1 .5-.55Z" fill="${dark}" fill-opacity=".5"/>`,
  stone: ({ main, dark }) =>
    `<path d="M-.2 0L-.17-1H.12L.2 0Z" fill="${main}"/><path d="M.04 0L.02-1H.12L.2 0Z" fill="${dark}"/>`,
  diamond: ({ main, dark, pale }) =>
    `<path d="M0 0L-.42-.55 0-1 .42-.55Z" fill="${main}"/><path d="M0 0L.42-.55 0-1Z" fill="${dark}"/><path d="M0-1L-.42-.55H0Z" fill="${pale}"/>`,
}

/** Where the prompt names no subject, one of four plain shapes takes its place. */
export function shapeFor(subject: Subject | undefined, random: Random): Shape {
  const plain = pick(random, ['disc', 'arch', 'stone', 'diamond'] as const)
  return subject ?? plain
}

export function drawSubject(
  shape: Shape,
  palette: Palette,
  x: number,
  foot: number,
  size: number,
  flip: boolean,
): string {
  const shades = {
    main: hex(palette.accent),
    dark: hex(mix(palette.accent, palette.ink, 0.55)),
    pale: hex(mix(palette.accent, palette.paper, 0.7)),
    lamp: hex(palette.light),
  }
  const place = `translate(${short(x)} ${short(foot)}) scale(${short(flip ? -size : size)} ${short(size)})`
  return `<g transform="${place}">${SHAPES[shape](shades)}</g>`
}
