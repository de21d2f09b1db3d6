import { expect, it } from 'vitest'
import { createWholeLines } from '../../../src/cli/mcp/server.js'

/** Returns the chunks that leave the stream. */
async function passed(chunks: readonly string[], maxBytes = 1_000): Promise<readonly string[]> {
  const lines = createWholeLines(maxBytes)
  const found: string[] = []
  lines.on('data', (chunk: Buffer) => void found.push(chunk.toString()))
  for (const chunk of chunks) lines.write(Buffer.from(chunk))
  await new Promise<void>((resolve) => void lines.end(resolve))
  return found
}

it('joins a message that arrives in many chunks, and passes others as they are', async () => {
  expect(await passed(['one\n', 'tw', 'o', '\nth', 'ree\n', 'four\nfive\n'])).toEqual([
    'one\n',
    'two\nth',
    'ree\n',
    'four\nfive\n',
  ])
})

it('keeps no more of a message than its limit', async () => {
  expect(await passed(['a'.repeat(600), 'b'.repeat(600), 'c'])).toEqual(['a'.repeat(600) + 'b'.repeat(600)])
})
