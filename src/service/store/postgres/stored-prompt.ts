import type { StoredInput } from '../../stored-run.js'

/** The prompt for the column `prompt`, without what the text of PostgreSQL cannot have: NUL and half surrogate pairs. */
export const promptOf = ({ prompt }: StoredInput): string | null =>
  typeof prompt === 'string' ? prompt.replace(/\0|\p{Surrogate}/gu, '') : null
