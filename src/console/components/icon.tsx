/** Line icons on a 24 × 24 grid, in the text colour. Decorative: always use them with a text or a label. */
const PATHS = {
  runs: 'M3 4h18v16H3zM7.5 4v16M16.5 4v16M3 12h18M3 8h4.5M3 16h4.5M16.5 8H21M16.5 16H21',
  plus: 'M12 5v14M5 12h14',
  key: 'M13 15.5a5.5 5.5 0 1 1-11 0 5.5 5.5 0 0 1 11 0zM11.4 11.6L21 2M15.5 7.5l3 3L22 7l-3-3',
  credits: 'M14 8A6 6 0 1 1 2 8a6 6 0 0 1 12 0zM18.1 10.4A6 6 0 1 1 10.3 18M7 6h1v4',
  user: 'M16.5 7.5a4.5 4.5 0 1 1-9 0 4.5 4.5 0 0 1 9 0zM4 21a8 8 0 0 1 16 0',
  users: 'M13 8a4 4 0 1 1-8 0 4 4 0 0 1 8 0zM2 20a7 7 0 0 1 14 0M16 4.3a4 4 0 0 1 0 7.4M18 14a7 7 0 0 1 4 6',
  'sign-out': 'M10 4H5v16h5M15 8l4 4-4 4M19 12H9.5',
  copy: 'M9 9h11v11H9zM15 9V4H4v11h5',
  check: 'M5 12.5l4.5 4.5L19 7.5',
  close: 'M6 6l12 12M18 6L6 18',
  alert: 'M12 4L2.5 20h19zM12 10v4.5M12 17.3v.01',
  info: 'M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18zM12 11v5M12 8v.01',
  search: 'M10.5 17a6.5 6.5 0 1 0 0-13 6.5 6.5 0 0 0 0 13zM15.5 15.5L20 20',
  download: 'M12 4v11M7.5 11l4.5 4.5 4.5-4.5M5 20h14',
  upload: 'M12 15V4.5M7.5 9L12 4.5 16.5 9M5 20h14',
  rotate: 'M20 11A8 8 0 0 0 6 6.8L4 9M4 4v5h5M4 13a8 8 0 0 0 14 4.2l2-2.2M20 20v-5h-5',
  pause: 'M9 5v14M15 5v14',
  play: 'M7 4.5v15l12-7.5z',
  edit: 'M4 20h4L19.5 8.5l-4-4L4 16zM13 7l4 4',
  eye: 'M2.5 12S6 5.5 12 5.5 21.5 12 21.5 12 18 18.5 12 18.5 2.5 12 2.5 12zM12 15a3 3 0 1 0 0-6 3 3 0 0 0 0 6z',
  'eye-off':
    'M4 4l16 16M9.9 5.8A9 9 0 0 1 12 5.5c6 0 9.5 6.5 9.5 6.5a16 16 0 0 1-2.6 3.3' +
    'M6.3 7.6A15.5 15.5 0 0 0 2.5 12S6 18.5 12 18.5a9 9 0 0 0 4.1-1M10 10a3 3 0 0 0 4.1 4.1',
  external: 'M13 5h6v6M19 5l-9 9M17 14v5H5V7h5',
  back: 'M19 12H5.5M11 6l-6 6 6 6',
  next: 'M9 5.5l6.5 6.5L9 18.5',
  down: 'M6 9l6 6 6-6',
  image: 'M4 4.5h16v15H4zM4 16l5-5 4.5 4.5 2.5-2.5 4 4M15.5 9v.01',
  video: 'M3 6h12v12H3zM15 10.5l6-3.5v10l-6-3.5',
  filter: 'M4 6h16M7 12h10M10 18h4',
  list: 'M4 6h16M4 12h16M4 18h16',
  grid: 'M4 4h16v16H4zM12 4v16M4 12h16',
} as const

export type IconName = keyof typeof PATHS

export function Icon({ name, size = 16 }: { readonly name: IconName; readonly size?: number }) {
  return (
    <svg class="icon" width={size} height={size} viewBox="0 0 24 24" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} />
    </svg>
  )
}
