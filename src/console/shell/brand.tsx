/** The mark and the name. */
export function Brand() {
  return (
    <span class="brand">
      <svg class="brand-mark" viewBox="0 0 32 32" width="24" height="24" aria-hidden="true" focusable="false">
        <rect width="32" height="32" rx="8" />
        <path class="brand-far" d="M10 8.500v15M16 8.500v15M22 8.500v15" />
        <path d="M10 17v6.500M16 11.500v12M22 14.500v9" />
      </svg>
      <span class="brand-name">rushes</span>
    </span>
  )
}
