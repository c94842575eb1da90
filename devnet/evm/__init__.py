"""The world, and what one transaction does to it; the engines that run code."""
