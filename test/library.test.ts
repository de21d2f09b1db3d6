/** The public interface as a list. To write docs/api.md anew after a change on purpose: npm run docs. */
import { describe, expect, it } from 'vitest'
import { namesUsed, publicApi } from './support/public-api.js'

const api = publicApi()

/** What every reader of TypeScript knows. */
const KNOWN = [
  'AbortSignal',
  'AsyncGenerator',
  'AsyncIterable',
  'Error',
  'Promise',
  'Readonly',
  'Record',
  'Uint8Array',
  'URL',
]

/** Computed from the schemas that are listed; nobody needs their names. */
const INNER = ['IMAGE_INPUT', 'InputOf', 'VIDEO_INPUT']

describe('the public interface', () => {
  it('is listed in docs/api.md', async () => {
    const text = `# The library, name by name

Everything that \`import … from 'rushes'\` gives: the types as they are in the package. How it is used is in
[library.md](library.md). This list is compared by a test: what is not in it is not public, and what changes here is in the
[changelog](../CHANGELOG.md).

\`\`\`ts
${api.map((each) => each.text).join('\n\n')}
\`\`\`
`
    await expect(text).toMatchFileSnapshot('../docs/api.md')
  })

  it('is what the module has when it runs', async () => {
    const library = await import('../dist/index.js' as string)
    const values = api.filter(({ isType }) => !isType).map(({ name }) => name)
    expect(Object.keys(library).sort()).toEqual([...values].sort())
  })

  it('names every type that it uses, so that a program can name it too', () => {
    const names = new Set([...api.map(({ name }) => name), ...KNOWN, ...INNER])
    const hidden = api.flatMap(({ name, text }) =>
      namesUsed(text.replace(/^export[^\n]*(const|type) \w+/m, ''))
        .filter((used) => !names.has(used))
        .map((used) => `${name}: ${used}`),
    )
    expect(hidden).toEqual([])
  })

  it('has no name twice, and says of every function what it does', () => {
    const names = api.map(({ name }) => name)
    expect(new Set(names).size).toBe(names.length)
    expect(
      api.filter(({ text }) => /declare (function|class)/.test(text) && !text.startsWith('/**')),
    ).toEqual([])
  })
})
