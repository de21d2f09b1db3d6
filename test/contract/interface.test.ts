/** interface.md compares the interface with the local service: every row names an existing test. */
import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { PROBLEMS } from '../../src/protocol/problems.js'

const read = (path: string): string => readFileSync(fileURLToPath(new URL(path, import.meta.url)), 'utf8')

const page = read('./interface.md')
const rows = page
  .split('\n')
  .filter((line) => line.startsWith('| ') && !line.startsWith('| interface'))
  .map((line) => line.slice(2, -2).split(' | '))
const named = rows.flatMap(([, , by = '']) => {
  const [, file, title] = /^`([^`]+)`(?:: (.+))?$/.exec(by.replace(/ \|$/, '').trim()) ?? []
  return file === undefined ? [] : [[file, title] as const]
})

describe('test/contract/interface.md', () => {
  test('covers every section, and names a test in almost every row', () => {
    const sections = [...page.matchAll(/^## .*\((\d)\)$/gm)].map(([, section]) => Number(section))
    expect(sections).toEqual([2, 3, 4, 5, 7, 8, 9])
    expect(rows.every((cells) => cells.length >= 2)).toBe(true)
    expect(named.length).toBeGreaterThan(rows.length - 5)
  })

  test.each(named)('names a test that exists: %s, %s', (file, title) => {
    const path = [`../service/${file}`, `./${file}`, `../${file}`].find((each) =>
      existsSync(new URL(each, import.meta.url)),
    )
    expect(path, `${file} does not exist`).toBeDefined()
    if (title !== undefined) expect(read(path ?? '')).toContain(`'${title}`)
  })

  test('names every code of the interface', () => {
    expect(Object.keys(PROBLEMS).filter((code) => !page.includes(`\`${code}\``))).toEqual([])
  })
})
