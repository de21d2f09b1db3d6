/** The form of the skill file; `docs-examples.test.ts` runs its commands. */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const [, frontMatter = '', body = ''] =
  /^---\n([\s\S]*?)\n---\n([\s\S]*)$/.exec(
    readFileSync(fileURLToPath(new URL('../skills/rushes/SKILL.md', import.meta.url)), 'utf8'),
  ) ?? []

test('the skill states its name and a description of at most 1,024 characters', () => {
  const fields = Object.fromEntries(
    frontMatter.split('\n').map((line) => [line.split(':')[0], line.replace(/^\w+: /, '')]),
  )
  expect(Object.keys(fields)).toEqual(['name', 'description'])
  expect(fields.name).toBe('rushes')
  expect(fields.description?.length).toBeLessThanOrEqual(1_024)
})

test('the skill stays below 500 words', () => {
  expect(`${frontMatter} ${body}`.split(/\s+/).length).toBeLessThan(500)
})

test('the skill names the commands that cost money, and the reaction to each exit code', () => {
  expect(body).toContain('Creates cost money')
  for (const code of [11, 12, 13]) expect(body).toContain(`Exit code ${code}`)
})
