/**
 * Cuts the pictures that the preview renderer draws with out of @iconify-json/fluent-emoji-flat (Fluent Emoji by
 * Microsoft, MIT): `node src/preview/cast/cut.mjs` writes `icons.json` beside it, one picture a line.
 *
 * Cut, because the package weighs 9 MB, of which two thirds are skin tones, men and women of one and the same picture,
 * signs and flags. What is cut is kept in the repository, so that who installs us installs a tenth of it.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'

const SOURCE = '@iconify-json/fluent-emoji-flat'
const TARGET = new URL('./icons.json', import.meta.url)

const { resolve } = createRequire(import.meta.url)
const read = (file) => JSON.parse(readFileSync(resolve(`${SOURCE}/${file}`), 'utf8'))
const [{ icons }, { categories }, chars, { version }] = [
  'icons.json',
  'metadata.json',
  'chars.json',
  'package.json',
].map(read)

const LEFT_OUT = ['Flags', 'Symbols']
const KEPT_SIGNS = [
  'musical-note',
  'musical-notes',
  'check-mark-button',
  'cross-mark',
  'sparkle',
  'infinity',
  'peace-symbol',
  'yin-yang',
]
const SKIN = /-(light|medium-light|medium|medium-dark|dark)$/
const ODD =
  /facing-right|oclock|-thirty|^(man|woman)-.*(running|walking|kneeling|standing|wheelchair|cane|bouncing|lifting|golfing|gesturing|pouting|frowning|shrugging|facepalming|tipping|raising|bowing|cartwheel|juggling|handball|water-polo|wrestling|swimming|surfing|rowing|biking|mountain|climbing|lotus|steamy|massage|haircut|feeding|hair$|bald|beard|veil|tuxedo|turban|supervillain|vampire|elf|zombie|mage|fairy|superhero|merman|health|mechanic|factory|office|scientist|technologist|judge|student|teacher|detective|guard|construction|firefighter|pilot|singer|artist|cook|farmer|astronaut)|^(men|women)-|couple-with|^kiss-|^family-|-bunny-ears|^person-(deaf|genie|gesturing|frowning|pouting|bowing|facepalming|shrugging|tipping|raising|wrestling|juggling|playing|getting|bald|blonde|curly|red-hair|white-hair|beard|in-steamy|in-bed|feeding|with-white|in-man|in-mot|taking)|folder|chart|^(man|woman|person)-(deaf|genie)|pregnant|breast|geni|-banknote|mailbox|inbox|outbox|card-index|^knot$|^white-flower$|bikini|briefs|middle-finger|cigarette|supervillain|zombie/

const names = Object.entries(categories)
  .filter(([category]) => !LEFT_OUT.includes(category))
  .flatMap(([, list]) => list)
  .filter((name) => name in icons && !SKIN.test(name) && !ODD.test(name))
const kept = [...new Set([...names, ...KEPT_SIGNS.filter((name) => name in icons)])].sort()

const charOf = new Map()
for (const [char, name] of Object.entries(chars)) if (!charOf.has(name)) charOf.set(name, char)

const lines = kept.map((name) => {
  const { body } = icons[name]
  return `${JSON.stringify(name)}:${JSON.stringify([charOf.get(name) ?? '', body])}`
})
const notice = `${SOURCE} ${version}: Fluent Emoji, Copyright (c) Microsoft Corporation, MIT License`
writeFileSync(TARGET, `{"notice":${JSON.stringify(notice)},\n"icons":{\n${lines.join(',\n')}\n}}\n`)
