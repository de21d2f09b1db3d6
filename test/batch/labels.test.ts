/** Labels of rows: where they come from in each format, and what is wrong with them. */
import { describe, expect, it } from 'vitest'
import { entriesOf, problemsOf, type ReadOptions } from './folder.js'

const labelsOf = async (text: string, options?: ReadOptions) =>
  (await entriesOf(text, options)).map(({ name, labels }) => [name, ...labels])

describe('the labels of a row', () => {
  it('replace those of the defaults, as other fields do', async () => {
    const text = `
defaults: { kind: image, prompt: x, label: [spring, " web "] }
runs:
  - { name: a }
  - { name: b, label: autumn }
  - { name: c, label: null }
  - { name: d, label: [] }
  - { name: e, label: [2024, true, "2024", "Ku\u0308che"] }
`
    expect(await labelsOf(text)).toEqual([
      ['a', 'spring', 'web'],
      ['b', 'autumn'],
      ['c'],
      ['d'],
      ['e', '2024', 'true', 'Küche'],
    ])
  })

  it('read a cell of CSV as one label, with its spaces', async () => {
    const csv = 'name,kind,prompt,label\na,image,x,spring campaign\nb,image,x,\n'
    expect(await labelsOf(csv, { name: 'shots.csv' })).toEqual([['a', 'spring campaign'], ['b']])
  })

  it('get the values of a matrix, and a key `label` sets them', async () => {
    const text = `
defaults: { kind: image, label: "set {animal}" }
runs:
  - { name: "{animal}", prompt: "a {animal}", matrix: { animal: [fox, bear] } }
  - { name: "{label}", prompt: "a button: {label}", matrix: { label: [ok, stop] } }
`
    expect(await labelsOf(text)).toEqual([
      ['fox', 'set fox'],
      ['bear', 'set bear'],
      ['ok', 'ok'],
      ['stop', 'stop'],
    ])
  })

  it.each([
    ['""', '1 a label must not be empty'],
    ['[web, null]', '1 label must be a text or a list of texts'],
    ['{ web: 1 }', '1 label must be a text or a list of texts'],
    [`[${Array.from({ length: 21 }, (_, at) => at)}]`, '1 a run must have at most 20 labels'],
  ])('are refused with their place: %s', async (label, problem) => {
    expect(await problemsOf(`[{ name: fox, kind: image, prompt: x, label: ${label} }]`)).toEqual([problem])
  })
})
