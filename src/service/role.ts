/** What one node of a service does: `api` answers requests, `worker` renders runs, and `all` does both. */
export const ROLES = ['all', 'api', 'worker'] as const

export type Role = (typeof ROLES)[number]
