/** The script in docs/engine-types.md is Python. */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

const DOCS = readFileSync(new URL('../../../docs/engine-types.md', import.meta.url), 'utf8')
const hasPython = spawnSync('sh', ['-c', 'command -v python3']).status === 0

test.runIf(hasPython)('the Python script is Python', () => {
  const script = /^```python\n([\s\S]*?)^```$/m.exec(DOCS)?.[1] ?? ''
  const { status, stderr } = spawnSync('python3', ['-c', 'import ast, sys; ast.parse(sys.stdin.read())'], {
    input: script,
  })
  expect([status, stderr.toString(), script.length > 200]).toEqual([0, '', true])
})
