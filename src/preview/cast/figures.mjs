/**
 * Selects the figures from @iconify-json/fluent-emoji-flat (Fluent Emoji by Microsoft, MIT). Most of its 9 MB
 * are skin tones, male and female versions of the same figure, signs and flags, which are not needed. The
 * build bundles only the selected figures (`figuresAtBuild`), so the package is a development dependency.
 */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'

const PACKAGE = '@iconify-json/fluent-emoji-flat'
const SIGNS = 'musical-note musical-notes check-mark-button cross-mark sparkle infinity peace-symbol yin-yang'
const VARIANT = /-(light|medium-light|medium|medium-dark|dark|facing-right|oclock|thirty)$/

function cutFigures() {
  const { resolve } = createRequire(import.meta.url)
  const read = (file) => JSON.parse(readFileSync(resolve(`${PACKAGE}/${file}`), 'utf8'))
  const { icons } = read('icons.json')
  const { Flags, Symbols } = read('metadata.json').categories
  const leftOut = new Set([...Flags, ...Symbols])
  for (const sign of SIGNS.split(' ')) leftOut.delete(sign)
  const codes = new Map(
    Object.entries(read('chars.json'))
      .reverse()
      .map(([code, name]) => [name, code]),
  )
  const neutral = (name) => name.replace(/^(man|woman|men|women)-/, '')
  const isKept = (name) =>
    !leftOut.has(name) &&
    !VARIANT.test(name) &&
    (neutral(name) === name || !(neutral(name) in icons || `person-${neutral(name)}` in icons))
  return {
    notice: `${PACKAGE} ${read('package.json').version}: Fluent Emoji, Copyright (c) Microsoft Corporation, MIT License`,
    icons: Object.fromEntries(
      Object.entries(icons)
        .filter(([name]) => isKept(name))
        .map(([name, { body }]) => [name, [codes.get(name) ?? '', body]]),
    ),
  }
}

export const FIGURES = cutFigures()

/** A plugin for rolldown that replaces this file by the selected figures. */
export function figuresAtBuild() {
  const code = `export const FIGURES = ${JSON.stringify(FIGURES)}`
  return {
    name: 'figures-at-build',
    load: { filter: { id: /cast[\\/]figures\.mjs$/ }, handler: () => ({ code, moduleType: 'js' }) },
  }
}
