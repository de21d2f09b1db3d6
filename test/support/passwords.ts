/** Passwords of tests: checked and stored as those of the service, but derived at a cost that takes no time instead of 110 ms each. */
import { scryptSync } from 'node:crypto'
import { createPasswords, type Passwords } from '../../src/service/rules/credentials.js'

/** The stored text names the service's own cost. */
export const createQuickPasswords = (): Passwords =>
  createPasswords(async (password, { blockSize, parallelization, salt, keyBytes }) =>
    scryptSync(password, salt, keyBytes, { N: 16, r: blockSize, p: parallelization }),
  )
